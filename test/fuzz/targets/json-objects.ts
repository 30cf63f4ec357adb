import { isUtf8 } from 'node:buffer'
import { isDeepStrictEqual } from 'node:util'
import { WireError } from '@sluice/wire/wire-error'
import { JSON_LIMITS, type ScanLimits, scanObject } from '@sluice/wire/json/json-scan'
import type { Node, ScannedObject } from '@sluice/wire/json/scanned-object'
import { invariant } from '../invariant.ts'
import type { Target } from '../target.ts'
import { REQUESTS, LONG_REQUESTS } from './samples.ts'
import { JSON_TOKENS } from './tokens.ts'

/** Limits that short inputs exceed. */
const SMALL_LIMITS: ScanLimits = { depth: 6, nodes: 40, members: 6 }

/** Counts over the tokens of a valid JSON text. */
interface TokenCounts {
  readonly depth: number
  readonly values: number
  /** Keys of the top level as JSON.parse reads them, duplicates included. */
  readonly keys: readonly string[]
}

const TOKENS = /"(?:[^"\\]|\\.)*"|[[\]{}:,]|[^\s[\]{}:,"]+/g

function countTokens(text: string): TokenCounts {
  const tokens = text.match(TOKENS) ?? []
  const keys: string[] = []
  let depth = 0
  let deepest = 0
  let values = 0
  for (const [i, token] of tokens.entries()) {
    if (token === '}' || token === ']') depth--
    else if (token === '{' || token === '[') {
      deepest = Math.max(deepest, ++depth)
      values++
    } else if (token !== ',' && token !== ':') {
      if (tokens[i + 1] !== ':') values++
      else if (depth === 1) keys.push(JSON.parse(token) as string)
    }
  }
  return { depth: deepest, values, keys }
}

/** Result of JSON.parse, or undefined if the input is not an object in JSON. */
function parsed(input: Buffer): Record<string, unknown> | undefined {
  if (!isUtf8(input)) return undefined
  try {
    const value: unknown = JSON.parse(input.toString())
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
    return value as Record<string, unknown>
  } catch {
    return undefined
  }
}

/** Compares a node with a parsed value, recursively. */
function compare(scan: ScannedObject, node: Node, value: unknown): void {
  const kind = scan.kindOf(node)
  invariant(isDeepStrictEqual(scan.parse(node), value), 'a value is what JSON.parse makes of it')
  if (Array.isArray(value)) {
    const elements = scan.elements(node)
    invariant(kind === 'array' && elements.length === value.length, 'an array has its elements')
    for (const [i, element] of elements.entries()) compare(scan, element, value[i])
  } else if (typeof value === 'object' && value !== null) {
    invariant(kind === 'object', 'an object is one')
    for (const [key, member] of Object.entries(value)) {
      const found = scan.memberOf(node, key)
      if (found === undefined) invariant(/[^\x20-\x7e]/.test(key), 'a member in plain ASCII is found')
      else compare(scan, found, member)
    }
  } else
    invariant(
      kind === (value === null ? 'null' : typeof value === 'boolean' ? String(value) : typeof value),
      'a scalar has its kind',
    )
}

function check(input: Buffer, limits: ScanLimits): string {
  const value = parsed(input)
  let scan: ScannedObject
  try {
    scan = scanObject(input, limits)
  } catch (error) {
    if (!(error instanceof WireError)) throw error
    invariant(error.code === 'invalid_json', 'what is refused is invalid_json')
    if (value === undefined) return 'no JSON'
    const { depth, values, keys } = countTokens(input.toString())
    const isBeyond = depth > limits.depth || values > limits.nodes || keys.length > limits.members
    invariant(isBeyond || new Set(keys).size < keys.length, `valid JSON is accepted: ${error.message}`)
    return isBeyond ? 'beyond limits' : 'key twice'
  }
  invariant(value !== undefined, 'what JSON.parse refuses is refused')
  const { depth, values, keys } = countTokens(input.toString())
  invariant(depth <= limits.depth && values <= limits.nodes && keys.length <= limits.members, 'limits hold')
  invariant(isDeepStrictEqual([...scan.members.keys()], keys), 'members are the keys, in their order')
  for (const [key, member] of scan.members) {
    compare(scan, member.node, value[key])
    invariant(isDeepStrictEqual(scan.value(key), value[key]), 'a value is parsed as it is')
    const own = value[key]
    const count = typeof own === 'object' && own !== null ? Object.keys(own).length : 0
    invariant(member.count >= count, 'members of members are counted')
  }
  return `${Math.min(keys.length, 9)} ${Math.min(depth, 9)}`
}

/** Scanner of JSON objects, compared with JSON.parse. */
export const JSON_OBJECTS: Target = {
  seeds: [
    ...REQUESTS.chat,
    ...REQUESTS.messages,
    '{"a":[1,-0,2.5e+3,{"b":null}],"mod\\u0065l":"x\\ud83d\\ude00","t":true,"f":false}',
    '{"a":{"mod\\u0065l":1,"b\\n":[]}}',
    ' {"a" : {"b" : {"c" : {"d" : []}}}} ',
  ],
  tokens: JSON_TOKENS,
  repeated: LONG_REQUESTS,
  run: (input) => `${check(input, JSON_LIMITS)}, ${check(input, SMALL_LIMITS)}`,
}
