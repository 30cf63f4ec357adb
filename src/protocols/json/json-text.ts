/** A member of an object that is written as text: its name, and the JSON text of its value. */
export type MemberText = readonly [name: string, text: string | undefined]

/**
 * The JSON text of an object with these members, in this order; undefined ones are left out. Values that were
 * text to begin with keep it: a value that is parsed and written again loses the order of integer-like keys,
 * and digits.
 */
export function objectOf(members: readonly MemberText[]): string {
  let text = ''
  for (const [name, value] of members)
    if (value !== undefined) text += `${text === '' ? '' : ','}${JSON.stringify(name)}:${value}`
  return `{${text}}`
}

/** An object's members as text; JSON.stringify has no text for what is undefined. */
export function membersOf(fields: object): MemberText[] {
  return Object.entries(fields).map(([name, value]) => [name, JSON.stringify(value)])
}

/** The JSON text of an array of values that are text. */
export function arrayOf(texts: readonly string[]): string {
  return `[${texts.join(',')}]`
}
