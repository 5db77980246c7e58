# A small C project with a library, as many are: make follows the headers that compilers find.
#     make -f project.mk SOURCES=FOLDER
objects := $(patsubst $(SOURCES)/%.c,%.o,$(wildcard $(SOURCES)/part_*.c))

result: program
	./program > $@

program: main.o libparts.a
	$(CC) $^ -o $@

libparts.a: $(objects)
	$(AR) rcsD $@ $^

%.o: $(SOURCES)/%.c
	$(CC) -O1 -Wall -MMD -c $< -o $@

-include $(wildcard *.d)
