import { isDeepStrictEqual } from 'node:util'
import { applyEdits } from '@sluice/wire/json/json-edit'
import { scanObject } from '@sluice/wire/json/json-scan'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import { invariant } from '../invariant.ts'
import type { Target } from '../target.ts'
import { REQUESTS } from './samples.ts'
import { JSON_TOKENS } from './tokens.ts'

const NEW_VALUES = ['1', '"x"', '{"a":[1]}', 'null', '12345678901234567890']

/** Edits of single members of a request, which must leave all other bytes as they are. */
export const JSON_EDITS: Target = {
  seeds: [...REQUESTS.chat, '{"a":1}', '{}', ' { "a" : 1 , "b" : [ 2 ] , "c":"3" } '],
  tokens: JSON_TOKENS,
  repeated: [],
  run(input, random) {
    const scan = scanObject(input)
    const names = [...scan.members.keys(), 'new', 'é"\\']
    const remove = names.filter(() => random() < 0.3)
    const replace = new Map(
      names
        .filter(() => random() < 0.3)
        .map((name) => [name, NEW_VALUES[Math.floor(random() * NEW_VALUES.length)] as string]),
    )
    const edited = applyEdits(input, scan, { remove, replace })
    const again = rescan(edited)
    const meant = new Map([...scan.members.values()].map(({ key, node }) => [key, scan.textOf(node)]))
    for (const name of remove) if (!replace.has(name)) meant.delete(name)
    for (const [name, text] of replace) meant.set(name, text)
    const found = new Map([...again.members.values()].map(({ key, node }) => [key, again.textOf(node)]))
    invariant(isDeepStrictEqual([...found], [...meant]), 'members are what they were, but for the changed')
    const isSame = replace.size === 0 && !remove.some((name) => scan.has(name))
    invariant(!isSame || edited === input, 'where nothing changes, the bytes stay')
    return `${Math.min(3, remove.length)} ${Math.min(3, replace.size)} ${Math.min(5, scan.members.size)}`
  },
}

/** Scans an edited object, which must be valid JSON. */
function rescan(edited: Buffer): ScannedObject {
  try {
    return scanObject(edited)
  } catch (cause) {
    throw new Error(`it is no JSON any more: ${edited.toString()}`, { cause })
  }
}
