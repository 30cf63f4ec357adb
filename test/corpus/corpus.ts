import { createHash } from 'node:crypto'
import type { Case } from './case.ts'
import { fieldKinds, numbers } from './fields.ts'
import { found } from './found.ts'
import { jsonVariants } from './json-variants.ts'
import { encodings, headers, modelNames } from './outer.ts'
import { shapes } from './shapes.ts'

/** The families of inputs, the same in every run; an input in two families counts for the first. */
export function corpus(): ReadonlyMap<string, readonly Case[]> {
  const seen = new Set<string>()
  const isNew = (each: Case): boolean => {
    const { size } = seen
    return seen.add(printOf(each)).size > size
  }
  return new Map(Object.entries(FAMILIES).map(([name, family]) => [name, family().filter(isNew)]))
}

/** A digest of an input, to detect duplicates. */
function printOf(each: Case): string {
  const digests = each.protocols.map((protocol) => {
    const body = Buffer.from(each.body('m', protocol) as string)
    return createHash('sha1')
      .update(each.wire?.(body) ?? body)
      .digest('hex')
  })
  return `${each.protocols.join()} ${JSON.stringify(each.headers)} ${digests.join()}`
}

const FAMILIES: Readonly<Record<string, () => Case[]>> = {
  'JSON, and what is nearly JSON': jsonVariants,
  'fields with values of every kind': fieldKinds,
  'numbers at the edges': numbers,
  'messages, tools and options of wrong shapes': shapes,
  'names of no model': modelNames,
  'compressed bodies': encodings,
  'odd headers': headers,
  'what was found': found,
}
