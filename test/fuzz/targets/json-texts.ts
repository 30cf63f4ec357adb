import { JsonEndDetector } from '../../../packages/wire/src/chat/decode/tool-call-decoder.ts'
import { parseExact } from '@sluice/wire/json/exact-json'
import { JsonOutline } from '@sluice/wire/json/json-outline'
import { inputObject, StreamedInputs } from '@sluice/wire/tool-input'
import { choppedAtRandom } from '../../generators/chunks.ts'
import { invariant } from '../invariant.ts'
import type { Target } from '../target.ts'
import { REQUESTS, LONG_REQUESTS } from './samples.ts'
import { JSON_TOKENS } from './tokens.ts'

/** Bounds on an outline, and on a run of base64 characters in it. */
const MAX_OUTLINE_BYTES = 1_048_576
const MAX_BASE64_RUN = 1_024
const NUMBER = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g
const STRING = /"(?:[^"\\]|\\.)*"/g

function parsed(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) }
  } catch {
    return undefined
  }
}

function checkExact(text: string, value: { readonly value: unknown } | undefined): void {
  let exact: unknown
  try {
    exact = parseExact(text)
  } catch (error) {
    invariant(error instanceof SyntaxError && !value, 'what JSON.parse reads is read')
    return
  }
  invariant(value !== undefined, 'what JSON.parse refuses is refused')
  const written = JSON.stringify(exact)
  invariant(JSON.stringify(JSON.parse(written)) === JSON.stringify(value.value), 'it is the same value')
  if (!/\d{16}/.test(text)) return
  const given = new Set(text.replaceAll(STRING, '""').match(NUMBER))
  const numbers = written.replaceAll(STRING, '""').match(NUMBER) ?? []
  invariant(
    numbers.every((number) => given.has(number)),
    'numbers are written as they were',
  )
}

function outlineOf(chunks: readonly Buffer[]): string | undefined {
  const outline = new JsonOutline()
  for (const chunk of chunks) outline.push(chunk)
  invariant(outline.length <= MAX_OUTLINE_BYTES, 'an outline is bounded')
  return outline.text
}

function checkOutline(input: Buffer, isJson: boolean, random: () => number): void {
  const outline = outlineOf([input])
  invariant(
    outlineOf(choppedAtRandom(input, Math.max(20, input.length >> 8), random)) === outline,
    'a cut changes no outline',
  )
  if (outline === undefined) return
  invariant(outline.length <= input.toString().length, 'an outline is no longer than its text')
  invariant(!isJson || parsed(outline) !== undefined, 'the outline of JSON is JSON')
  if (input.length <= MAX_BASE64_RUN) invariant(outline === input.toString(), 'what is short is kept whole')
}

/** Text emitted for a tool's input that arrives in pieces. */
function emittedInput(pieces: readonly string[]): string {
  const inputs = new StreamedInputs()
  inputs.begin(0)
  return pieces.map((piece) => inputs.add(0, piece)).join('') + inputs.end(0)
}

function checkInput(text: string, random: () => number): void {
  // Longer pieces for a longer text bound the number of pieces.
  const maxLength = Math.max(5, text.length >> 10)
  const pieces = text.match(new RegExp(`[^]{1,${1 + Math.floor(random() * maxLength)}}`, 'g')) ?? []
  const emitted = emittedInput([text])
  invariant(emittedInput(pieces) === emitted, 'a cut changes no input of a tool')
  invariant(
    emitted === text || (emitted === '' && /^\s*(?:null|"")?\s*$/.test(text)),
    'an input is emitted unchanged',
  )
  const object = inputObject(text)
  if (object === undefined) return
  const { value } = parsed(object) ?? {}
  invariant(typeof value === 'object' && value !== null && !Array.isArray(value), 'an object is one')
  const progress = [new JsonEndDetector(), new JsonEndDetector()] as const
  progress[0].feed(object)
  invariant(progress[0].isComplete, 'an object that is whole is seen to be')
  progress[1].feed(object.slice(0, -1))
  invariant(!progress[1].isComplete, 'one that is not is not')
}

/** Readers that preserve JSON text: exact numbers, outlines, inputs of tools. */
export const JSON_TEXTS: Target = {
  seeds: [
    ...REQUESTS.messages,
    '{"a":12345678901234567890,"b":1.50,"c":"1234567890123456","d":[1e400,-0.0]}',
    'null',
    ' "" ',
    `{"a":"${'QUJD'.repeat(300)}","b":"\\u00e9\\/"}`,
    `{"a":"${'QUJD'.repeat(300)}\\/"}`,
  ],
  tokens: [...JSON_TOKENS, 'A'.repeat(1_025), 'A'.repeat(1_024), '\\/', '\\u12', '12345678901234567'],
  repeated: LONG_REQUESTS,
  run(input, random) {
    const text = input.toString()
    const value = parsed(text)
    checkExact(text, value)
    checkOutline(Buffer.from(text), value !== undefined, random)
    checkInput(text, random)
    return value === undefined ? 'no JSON' : value.value === null ? 'null' : typeof value.value
  },
}
