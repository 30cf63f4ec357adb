import { chatCodec } from '@sluice/wire/chat'
import type { Codec } from '@sluice/wire/codec'
import type { Conversation, MediaPart, Part, Tool } from '@sluice/wire/conversation'
import { geminiCodec } from '@sluice/wire/gemini'
import { RESPONSE_LIMITS, scanObject } from '@sluice/wire/json/json-scan'
import { messagesCodec } from '@sluice/wire/messages'
import { choicesOfAnswer } from '@sluice/wire/readable-turns'
import { requestedChoiceCount, type ReplyPart } from '@sluice/wire/reply'
import { responsesCodec } from '@sluice/wire/responses'
import type { CallKind } from '../../domain/endpoints.ts'
import type { CallContent } from '../telemetry.ts'

// Structures defined by the JSON schemas of the OpenTelemetry conventions. docs/telemetry.md: What was said

type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json }

/** Part of a message in the form of the OpenTelemetry conventions. */
type MessagePart = { readonly type: string } & Readonly<Record<string, Json>>

/** The messages and tools of a call, by attribute name; absent if the content cannot be read. */
export interface MessageAttributes {
  readonly 'gen_ai.system_instructions'?: readonly MessagePart[]
  readonly 'gen_ai.input.messages'?: readonly Json[]
  readonly 'gen_ai.output.messages'?: readonly Json[]
  readonly 'gen_ai.tool.definitions'?: readonly Json[]
}

const NAMES = [
  'gen_ai.system_instructions',
  'gen_ai.input.messages',
  'gen_ai.output.messages',
  'gen_ai.tool.definitions',
] as const satisfies readonly (keyof MessageAttributes)[]

/**
 * Levels of lists and objects within arguments and schemas; deeper ones are exported as texts. Several collectors
 * read at most 100 messages of protocol buffers within each other: those around arguments are 16, and an object
 * is three.
 */
const MAX_NESTING = 24

/** Length of the messages in the attributes of these spans, in characters. */
export function lengthOfContent(
  spans: readonly { readonly attributes: Readonly<Record<string, unknown>> }[],
): number {
  let length = 0
  for (const { attributes } of spans)
    for (const name of NAMES) {
      const text = attributes[name]
      if (typeof text === 'string') length += text.length
    }
  return length
}

/** Codecs of the endpoints with conversations. */
const CODECS: Readonly<Partial<Record<CallKind, Codec>>> = {
  chat: chatCodec,
  messages: messagesCodec,
  responses: responsesCodec,
  gemini: geminiCodec,
}

/**
 * Reads the messages from the request and the response, in the client's protocol. Never throws. `reasons` has
 * the finish reason of each choice.
 */
export function messageAttributesOf(
  kind: CallKind,
  content: CallContent,
  reasons: readonly string[],
): MessageAttributes {
  const codec = CODECS[kind]
  if (!codec) return {}
  const asked = attempt(() => codec.decodeRequest(scanObject(content.request, RESPONSE_LIMITS), new Set()))
  const { answer } = content
  const choices = asked ? requestedChoiceCount(asked) : 1
  const messages =
    answer &&
    attempt(() =>
      choicesOfAnswer(codec, answer, choices).map((parts, at) =>
        answered(parts.map(partOf), reasons[at] ?? 'error'),
      ),
    )
  return {
    ...(asked && attempt(() => request(asked))),
    ...(messages && { 'gen_ai.output.messages': messages }),
  }
}

function attempt<Read>(read: () => Read): Read | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

function request({ system, turns, tools }: Conversation): MessageAttributes {
  const instructions = system.map(({ text }) => ({ type: 'text', content: text }))
  return {
    ...(instructions.length > 0 && { 'gen_ai.system_instructions': instructions }),
    'gen_ai.input.messages': turns.flatMap(({ role, parts }) => messagesOf(role, parts)),
    ...(tools.length > 0 && { 'gen_ai.tool.definitions': tools.map(definition) }),
  }
}

/**
 * Converts one turn to messages. The OpenTelemetry conventions require a separate message for each tool
 * result.
 */
function messagesOf(role: string, parts: readonly Part[]): Json[] {
  const results = parts.filter(({ kind }) => kind === 'tool-result').map(partOf)
  const others = parts.filter(({ kind }) => kind !== 'tool-result').map(partOf)
  return [
    ...results.map((result) => ({ role: 'tool', parts: [result] })),
    ...(others.length > 0 ? [{ role, parts: others }] : []),
  ]
}

function partOf(part: Part | ReplyPart): MessagePart {
  switch (part.kind) {
    case 'text':
      return { type: 'text', content: 'withoutMedia' in part ? (part.withoutMedia ?? part.text) : part.text }
    case 'thinking':
      return { type: 'reasoning', content: part.text }
    case 'tool-call':
      return { type: 'tool_call', id: part.id, name: part.name, arguments: parsed(part.input) }
    case 'tool-result':
      return { type: 'tool_call_response', id: part.callId, response: resultText(part.parts) }
    case 'media':
      return mediaPart(part)
    case 'search':
      return {
        type: 'server_tool_call',
        name: 'web_search',
        server_tool_call: { type: 'web_search', query: part.query },
      }
    case 'opaque':
      return { type: 'opaque' }
  }
}

/** Describes media without their data, although the OpenTelemetry conventions include the data as base64. */
function mediaPart({ source }: MediaPart): MessagePart {
  const modality = (source.mediaType ?? '').split('/')[0] ?? ''
  const known = { modality, ...(source.mediaType !== undefined && { mime_type: source.mediaType }) }
  return source.kind === 'url' ? { type: 'uri', ...known, uri: source.url } : { type: 'media', ...known }
}

function resultText(parts: readonly { readonly kind: string; readonly text?: string }[]): string {
  return parts.map(({ text }) => text ?? '').join('')
}

function parsed(input: string): Json {
  if (input === '') return {}
  try {
    const value = JSON.parse(input) as Json
    return isNestedDeeply(value) ? input : value
  } catch {
    return input
  }
}

/** Works level by level: `JSON.parse` reads any depth, at which recursion would exhaust the stack. */
function isNestedDeeply(value: Json): boolean {
  let level: unknown[] = [value]
  for (let depth = 0; depth <= MAX_NESTING; depth += 1) {
    const containers = level.filter((each) => typeof each === 'object' && each !== null)
    if (containers.length === 0) return false
    level = containers.flatMap((each) => Object.values(each))
  }
  return true
}

function definition({ name, description, schema }: Tool): Json {
  return {
    type: 'function',
    name,
    ...(description !== undefined && { description }),
    ...(schema !== undefined && { parameters: parsed(schema) }),
  }
}

const answered = (parts: readonly MessagePart[], reason: string): Json => ({
  role: 'assistant',
  parts,
  finish_reason: reason,
})
