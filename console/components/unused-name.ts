/** The name, or if it is taken, the name with the next free number: `openai-2`, or as `numbered` formats it. */
export function unusedName(
  base: string,
  taken: ReadonlySet<string>,
  numbered: (number: number) => string = (number) => `${base}-${number}`,
): string {
  let name = base
  for (let number = 2; taken.has(name); number++) name = numbered(number)
  return name
}
