/** Member of an object as text: its name and the JSON text of its value. */
export type MemberText = readonly [name: string, text: string | undefined]

/**
 * Renders an object with these members, in order; undefined ones are omitted. Values given as text are not
 * parsed: parsing and rewriting would reorder integer-like keys and lose digits.
 */
export function objectOf(members: readonly MemberText[]): string {
  let text = ''
  for (const [name, value] of members)
    if (value !== undefined) text += `${text === '' ? '' : ','}${JSON.stringify(name)}:${value}`
  return `{${text}}`
}

/** Renders an object's members as text. Those that JSON.stringify omits are undefined. */
export function membersOf(fields: object): MemberText[] {
  return Object.entries(fields).map(([name, value]) => [name, JSON.stringify(value)])
}

/** Renders an array of values that are JSON text. */
export function arrayOf(texts: readonly string[]): string {
  return `[${texts.join(',')}]`
}
