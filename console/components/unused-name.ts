/** A name, with the next free number where it is taken: `openai-2`, or as `numbered` writes it. */
export function unusedName(
  base: string,
  taken: ReadonlySet<string>,
  numbered: (number: number) => string = (number) => `${base}-${number}`,
): string {
  let name = base
  for (let number = 2; taken.has(name); number++) name = numbered(number)
  return name
}
