import type { ProtocolName } from '../protocols.ts'
import type { Fields } from '../field.ts'
import { isJsonText, parseExact } from '../json/exact-json.ts'
import { asRecord } from '../json/record.ts'

/**
 * Gives a value the type that its protocol defines, without losing what it says. Returns the value itself if its type
 * is right, or if it cannot be read.
 */
type ValueRepair = (value: unknown) => unknown

/** A text: in place of it, servers send a list of parts, a part, or a number. */
const text: ValueRepair = (value) => {
  if (Array.isArray(value)) {
    const texts = value.map(textIn)
    return texts.every((one) => one !== undefined) ? texts.join('') : value
  }
  return typeof value === 'object' || typeof value === 'number' ? (textIn(value) ?? value) : value
}

function textIn(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (typeof value === 'number' || isNumberText(value)) return JSON.stringify(value)
  const said = asRecord(value)?.['text']
  return typeof said === 'string' ? said : undefined
}

/** A JSON text: in place of it, servers send what it stands for. */
const jsonText: ValueRepair = (value) => (typeof value === 'object' && value ? JSON.stringify(value) : value)

/** An object: in place of it, servers send its JSON text, or an empty one. */
const object: ValueRepair = (value) => {
  if (typeof value !== 'string') return value
  if (value.trim() === '') return {}
  try {
    return asRecord(parseExact(value)) ?? value
  } catch {
    return value
  }
}

/** A list: in place of it, servers send its only element. A text in it becomes the element that `ofText` makes. */
function list(element: ValueRepair, ofText?: (said: string) => object): ValueRepair {
  const mended: ValueRepair = (one) => element(typeof one === 'string' && ofText ? ofText(one) : one)
  return (value) => {
    if (value === undefined || value === null) return value
    if (Array.isArray(value)) return mapped(value, mended)
    if (typeof value === 'string') return ofText ? [ofText(value)] : value
    return asRecord(value) ? [element(value)] : value
  }
}

function mapped(values: readonly unknown[], change: ValueRepair): unknown {
  const changed = values.map(change)
  return changed.some((one, at) => one !== values[at]) ? changed : values
}

/** An object with members that are mended; all others stay. `ofText`: what a text in place of it means. */
function members(
  mends: Readonly<Record<string, ValueRepair>>,
  ofText?: (said: string) => object,
): ValueRepair {
  return (value) => {
    if (typeof value === 'string' && ofText) return ofText(value)
    const fields = asRecord(value)
    if (!fields || isNumberText(value)) return value
    const changed = Object.entries(mends).flatMap(([name, mend]) => {
      const after = mend(fields[name])
      return after === fields[name] ? [] : [[name, after] as const]
    })
    return changed.length === 0 ? value : { ...fields, ...Object.fromEntries(changed) }
  }
}

/** A member that is mended only in objects of these types. */
function ofType(types: readonly string[], mend: ValueRepair): ValueRepair {
  return (value) => (types.includes(String(asRecord(value)?.['type'])) ? mend(value) : value)
}

const CHAT_MESSAGE = members({
  content: text,
  refusal: text,
  reasoning_content: text,
  tool_calls: list(members({ function: members({ arguments: jsonText }) })),
  function_call: members({ arguments: jsonText }),
})

const BLOCK = ofType(
  ['text', 'thinking', 'tool_use', 'text_delta', 'thinking_delta', 'input_json_delta'],
  members({ text, thinking: text, input: object, partial_json: jsonText }),
)
const MESSAGE = members({ content: list(BLOCK, (said) => ({ type: 'text', text: said })) })

const PART: ValueRepair = (value) => {
  const part = members({ text, refusal: text })(value)
  const fields = asRecord(part)
  return fields?.['type'] === 'text'
    ? { annotations: [], logprobs: [], ...fields, type: 'output_text' }
    : part
}
const ITEM = ofType(
  ['message', 'reasoning', 'function_call'],
  members({
    content: list(PART, (said) => ({ type: 'output_text', text: said, annotations: [], logprobs: [] })),
    summary: list(members({ text }), (said) => ({ type: 'summary_text', text: said })),
    arguments: jsonText,
  }),
)
const RESPONSE = { output: list(ITEM) }

const GEMINI_PART = members({ text, functionCall: members({ args: object }) }, (said) => ({ text: said }))
const CANDIDATE = members({
  content: members({ parts: list(GEMINI_PART, (said) => ({ text: said })) }, (said) => ({
    role: 'model',
    parts: [{ text: said }],
  })),
})

/** The values whose types imitators of a provider get wrong: those of whole answers and of events. */
const ANSWERS: Readonly<Partial<Record<ProtocolName, ValueRepair>>> = {
  chat: members({ choices: list(members({ message: CHAT_MESSAGE, delta: CHAT_MESSAGE })) }),
  messages: members({
    content: list(BLOCK, (said) => ({ type: 'text', text: said })),
    message: MESSAGE,
    content_block: BLOCK,
    delta: BLOCK,
  }),
  responses: (value) => {
    const fields = asRecord(value) ?? {}
    const isOfArguments = String(fields['type']).startsWith('response.function_call_arguments')
    const piece = isOfArguments ? jsonText : text
    return members({
      ...RESPONSE,
      response: members(RESPONSE),
      item: ITEM,
      part: PART,
      delta: piece,
      ...(typeof fields['type'] === 'string' && { arguments: jsonText }),
    })(value)
  },
  gemini: members({ candidates: list(CANDIDATE) }),
}

/**
 * Gives the values of an answer, or of an event of a stream, the types that the protocol defines. Returns the same
 * object if all have them. Numbers with many digits are expected as `parseExact` makes them.
 */
export function withRightTypes(protocol: ProtocolName, answer: Fields): Fields {
  return asRecord(ANSWERS[protocol]?.(answer)) ?? answer
}

function isNumberText(value: unknown): boolean {
  return typeof value === 'object' && value !== null && isJsonText(value)
}
