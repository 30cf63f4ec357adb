import { asRecord } from '../json/record.ts'

type Item = Readonly<Record<string, unknown>>

/** Maximum length of an item's id that is kept. */
const MAX_ID_LENGTH = 256

const NONE: readonly string[] = []

/** The id of an item, if it has one that is short enough to be kept. */
export function itemIdIn(item: Item | undefined): readonly string[] {
  const id = item?.['id']
  return typeof id === 'string' && id !== '' && id.length <= MAX_ID_LENGTH ? [id] : NONE
}

/** Collects texts from the items of an output, in order; none if it is not a list. */
export function inItems(
  output: unknown,
  textsIn: (item: Item | undefined) => readonly string[],
): readonly string[] {
  if (!Array.isArray(output)) return NONE
  const found: string[] = []
  for (const item of output) for (const text of textsIn(asRecord(item))) found.push(text)
  return found
}
