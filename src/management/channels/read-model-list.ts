import { asRecord } from '@sluice/wire/json/record'

/** Maximum length of a model's name in characters. */
const MAX_NAME_LENGTH = 200

/**
 * The entries of an upstream's model list, whatever its protocol; undefined if the body is not a model list.
 */
export function entriesOfList(body: Buffer): readonly unknown[] | undefined {
  let value: unknown
  try {
    value = JSON.parse(body.toString())
  } catch {
    return undefined
  }
  const list = Array.isArray(value) ? value : (asRecord(value)?.['data'] ?? asRecord(value)?.['models'])
  return Array.isArray(list) ? list : undefined
}

/** The name of the model in an entry of a model list; undefined if there is no valid one. */
export function nameOfEntry(entry: unknown): string | undefined {
  const model = asRecord(entry)
  const id = model?.['id'] ?? model?.['name']
  const name = typeof id === 'string' ? id.replace(/^models\//, '') : ''
  return name !== '' && name.length <= MAX_NAME_LENGTH && isPrintable(name) ? name : undefined
}

function isPrintable(name: string): boolean {
  return !/[\p{C}\s]/u.test(name)
}
