import { z } from 'zod'
import type { Channel } from '../domain/records/channel.ts'
import { ALREADY_REPORTED, dictionary, type Field, list, name, section } from './fields.ts'
import { type YamlNode, UnresolvedScalar, YamlScalar } from './yaml-node.ts'

/** Members that determine the call or its cost. */
const RESERVED: ReadonlySet<string> = new Set(['model', 'stream', 'n', 'messages', 'input', 'contents'])

/** A JSON value, as its text. */
const json: Field<string> = z.unknown().transform((given, ctx): string => {
  const written = jsonOf(given as YamlNode)
  if (written !== undefined) return written
  ctx.issues.push({ code: 'custom', message: ALREADY_REPORTED, input: undefined })
  return z.NEVER
})

const members = dictionary(json, 'a mapping from names of members').superRefine((given, ctx) => {
  for (const key of given.keys()) if (RESERVED.has(key)) ctx.addIssue({ ...reserved, path: [key] })
})

const reserved = {
  code: 'custom',
  message: 'expected a member that the gateway does not set itself',
} as const

const removed = name('the name of a member').refine((given) => !RESERVED.has(given), reserved.message)

/** Changes to the bodies of a channel's requests. `docs/configuration.md: Channels`. */
export const override: Field<Channel['override']> = section({
  set: members,
  default: members,
  remove: list(removed, 'a list of names of members'),
})

/** A number in JSON notation, which keeps all its digits. */
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

/** The JSON text of a node; undefined if it contains variables that are not set. */
function jsonOf(node: YamlNode): string | undefined {
  if (node === undefined) return 'null'
  if (node instanceof UnresolvedScalar) return undefined
  if (node instanceof YamlScalar)
    return typeof node.value === 'number' && NUMBER.test(node.source)
      ? node.source
      : JSON.stringify(node.value)
  if (Array.isArray(node)) return bracketed('[', (node as readonly YamlNode[]).map(jsonOf), ']')
  const texts = Object.entries(node).map(([key, value]) => {
    const written = jsonOf(value)
    return written === undefined ? undefined : `${JSON.stringify(key)}:${written}`
  })
  return bracketed('{', texts, '}')
}

function bracketed(open: string, texts: readonly (string | undefined)[], close: string): string | undefined {
  return texts.includes(undefined) ? undefined : `${open}${texts.join(',')}${close}`
}
