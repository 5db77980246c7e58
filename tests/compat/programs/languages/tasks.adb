--  A task that is met, and a check that fails.
with Ada.Text_IO; use Ada.Text_IO;

procedure Tasks is
   task type Worker is
      entry Start (Count : Integer);
   end Worker;
   Total : Integer := 0;
   pragma Atomic (Total);

   task body Worker is
      Mine : Integer;
   begin
      accept Start (Count : Integer) do
         Mine := Count;
      end Start;
      for I in 1 .. Mine loop
         Total := (Total + I) mod 10007;
      end loop;
   end Worker;

   Values : array (1 .. 3) of Integer := (1, 2, 3);
   At_Index : Integer := Values (3);
begin
   declare
      One : Worker;
   begin
      One.Start (1000);
   end;
   begin
      At_Index := At_Index + 1;
      Put_Line (Integer'Image (Values (At_Index)));
   exception
      when Constraint_Error => Put_Line ("constraint");
   end;
   Put_Line (Integer'Image (Total));
end Tasks;
