import { asRecord } from '@sluice/wire/json/record'

/** Maximum length of a model's name. */
const MAX_NAME_LENGTH = 200

/** The entries of a list of models of any dialect; undefined if the body is not such a list. */
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

/** The name of a model in a list; undefined if it cannot be one. */
export function nameOfEntry(entry: unknown): string | undefined {
  const model = asRecord(entry)
  const id = model?.['id'] ?? model?.['name']
  const name = typeof id === 'string' ? id.replace(/^models\//, '') : ''
  return name !== '' && name.length <= MAX_NAME_LENGTH && isPrintable(name) ? name : undefined
}

function isPrintable(name: string): boolean {
  return !/[\p{C}\s]/u.test(name)
}
