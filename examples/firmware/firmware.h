#pragma once

int main(void);
void on_tick(void);

/* Interrupts each time that the processor's clock has counted so far. */
void start_timer(unsigned period);
void stop_timer(void);
