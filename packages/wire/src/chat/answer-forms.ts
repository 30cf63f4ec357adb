import { addedTo, generatedText, indexOfChoice } from './answer.ts'
import { asRecord } from '../json/record.ts'
import {
  type AnswerForms,
  isErrorBody,
  type Json,
  dataFrame,
  recordsInList,
  type StreamEvent,
} from '../answer-forms.ts'

const DONE = 'data: [DONE]\n\n'
/** Finish reasons of complete responses. */
const OWN_ENDS: ReadonlySet<unknown> = new Set(['stop', 'tool_calls', 'function_call'])
/** Fields of a delta whose text replaces the previous one instead of continuing it. */
const REPLACED: ReadonlySet<string> = new Set(['role', 'id', 'type', 'name', 'format', 'signature', 'index'])

/** Converts answers of `/v1/chat/completions` between one JSON object and a stream of events. */
export const chatAnswerForms: AnswerForms = {
  whole(events) {
    const head = wholeHead(events, 'chat.completion')
    if (!head) return undefined
    const choices = new Map<number, Json>()
    const begun = new Set<number>()
    for (const choice of choicesIn(events)) {
      const at = indexOfChoice(choice)
      const whole = choices.get(at) ?? { index: at, message: { role: 'assistant', content: null } }
      choices.set(at, whole)
      const { index: _index, delta: _delta, message: _message, ...others } = choice
      const added = addedTo(choice, !begun.has(at))
      if (generatedText(added).length > 0) begun.add(at)
      mergeDelta(whole['message'] as Json, { ...added })
      mergeChoice(whole, others)
    }
    for (const choice of choices.values()) {
      const message = choice['message'] as Json
      if (Array.isArray(message['tool_calls']))
        message['tool_calls'] = recordsInList(message['tool_calls']).map(withoutIndex)
      choice['finish_reason'] ??= null
    }
    return { ...head, choices: [...choices.values()] }
  },
  frames(whole, { includeUsage }) {
    const { choices, usage, ...rest } = whole
    const head = { ...rest, object: 'chat.completion.chunk' }
    const chunks = recordsInList(choices).flatMap((choice, at): Json[] => {
      const { index = at, message, delta: _delta, finish_reason, ...others } = choice
      const said = { ...asRecord(message) }
      const calls = said['tool_calls']
      if (Array.isArray(calls))
        said['tool_calls'] = recordsInList(calls).map((call, place) => ({ index: place, ...call }))
      return [
        { ...head, choices: [{ ...others, index, delta: said, finish_reason: null }] },
        { ...head, choices: [{ index, delta: {}, finish_reason }] },
      ]
    })
    return chunks.map(dataFrame).join('') + usageFrame(head, usage, includeUsage) + DONE
  },
  isComplete: (whole) =>
    areOwnEnds(whole, (choice) => {
      const refusal = asRecord(choice['message'])?.['refusal']
      return refusal === undefined || refusal === null || refusal === ''
    }),
}

/** Converts answers of `/v1/completions` between one JSON object and a stream of events. */
export const completionsAnswerForms: AnswerForms = {
  whole(events) {
    const head = wholeHead(events, 'text_completion')
    if (!head) return undefined
    const choices = new Map<number, Json>()
    for (const choice of choicesIn(events)) {
      const at = indexOfChoice(choice)
      const whole = choices.get(at) ?? { text: '', index: at, logprobs: null, finish_reason: null }
      choices.set(at, whole)
      const { index: _index, ...said } = choice
      mergeChoice(whole, said)
    }
    return { ...head, choices: [...choices.values()] }
  },
  frames(whole, { includeUsage }) {
    const { choices, usage, ...rest } = whole
    const head = { ...rest, object: 'text_completion' }
    const chunks = recordsInList(choices).map((choice) => ({ ...head, choices: [choice] }))
    return chunks.map(dataFrame).join('') + usageFrame(head, usage, includeUsage) + DONE
  },
  isComplete: (whole) => areOwnEnds(whole, () => true),
}

/**
 * Returns a stream of chat or completions with a usage chunk, or without it, as `includeUsage` says. `usage`
 * is the value to add if the stream has none.
 */
export function withUsageChunk(stream: string, includeUsage: boolean, usage: object | undefined): string {
  const frames = stream.match(/[^]*?(?:\r\n\r\n|\n\n|\r\r)|[^]+$/g) ?? []
  const isUsage = frames.map((frame) => {
    const data = frame.includes('"usage"') ? eventsInFrame(frame) : undefined
    return asRecord(data?.['usage']) !== undefined && recordsInList(data?.['choices']).length === 0
  })
  if (isUsage.includes(true) === includeUsage) return stream
  if (!includeUsage) return frames.filter((_frame, at) => isUsage[at] !== true).join('')
  if (!usage) return stream
  const last = frames.findLastIndex((frame) => eventsInFrame(frame) !== undefined)
  const { choices: _choices, usage: _none, ...head } = eventsInFrame(frames[last] ?? '') ?? {}
  return frames.toSpliced(last + 1, 0, usageFrame(head, usage, true)).join('')
}

function eventsInFrame(frame: string): Json | undefined {
  try {
    return asRecord(JSON.parse(frame.trim().replace(/^data: ?/, '')))
  } catch {
    return undefined
  }
}

function usageFrame(head: Json, usage: unknown, includeUsage: boolean): string {
  return includeUsage && asRecord(usage) ? dataFrame({ ...head, choices: [], usage }) : ''
}

/**
 * The fields that all chunks of a stream have in common. If chunks differ, the last value that is not null
 * counts.
 */
function wholeHead(events: readonly StreamEvent[], object: string): Json | undefined {
  const [first] = events
  if (!first || !events.some(({ data }) => recordsInList(data['choices']).length > 0)) return undefined
  const head: Json = {}
  for (const { data } of events) {
    if (isErrorBody(data)) return undefined
    const { choices: _choices, obfuscation: _obfuscation, ...others } = data
    Object.assign(head, withoutNulls(others, head))
  }
  if (head['usage'] === null) delete head['usage']
  return { ...head, object }
}

function choicesIn(events: readonly StreamEvent[]): Json[] {
  return events.flatMap(({ data }) => recordsInList(data['choices']))
}

function withoutIndex({ index: _index, ...call }: Json): Json {
  return call
}

/** The fields of `members`, except those that would replace a known value with null. */
function withoutNulls(members: Json, known: Json): Json {
  return Object.fromEntries(
    Object.entries(members).filter(([name, value]) => value !== null || !Object.hasOwn(known, name)),
  )
}

/**
 * Adds what a chunk states about a choice. Its text and the lists in `logprobs` continue; of other members the
 * last value counts, because some providers repeat them, such as the finish reason.
 */
function mergeChoice(into: Json, { text, logprobs, ...others }: Json): void {
  mergeDelta(into, { ...(text !== undefined && { text }), ...(logprobs !== undefined && { logprobs }) })
  for (const [name, value] of Object.entries(others)) {
    const [before, added] = [asRecord(ownMember(into, name)), asRecord(value)]
    if (value !== null || !Object.hasOwn(into, name))
      into[name] = before && added ? { ...before, ...added } : value
  }
}

/**
 * Adds a delta to `into`: texts are appended to texts, list elements merged by their index, and objects field
 * by field.
 */
function mergeDelta(into: Json, delta: Json): void {
  for (const [name, value] of Object.entries(delta)) {
    const before = ownMember(into, name)
    if (typeof value === 'string' && typeof before === 'string' && !REPLACED.has(name))
      into[name] = before + value
    else if (Array.isArray(value)) into[name] = mergedList(Array.isArray(before) ? before : [], value)
    else if (asRecord(value) && asRecord(before)) mergeDelta(before as Json, value as Json)
    else if (value !== null || before === undefined) {
      if (value !== '' || before === undefined || before === null)
        into[name] = asRecord(value) ? structuredClone(value) : value
    }
  }
}

/**
 * A member that the object itself has. Providers choose the names: under `__proto__` the prototype of all objects would be
 * merged into.
 */
function ownMember(object: Json, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined
}

/** The elements of each merged list by their index; a stream may add to one list thousands of times. */
const merged = new WeakMap<unknown[], Map<number, Json>>()

/**
 * Merges two lists: an element with an index continues the element that has the same index; other elements
 * are appended. A list that was merged before is changed itself.
 */
function mergedList(before: unknown[], added: readonly unknown[]): unknown[] {
  const known = merged.get(before)
  const all = known ? before : []
  const byIndex = known ?? new Map<number, Json>()
  const append = (element: unknown): void => {
    all.push(element)
    const index = indexIn(element)
    if (index !== undefined && !byIndex.has(index)) byIndex.set(index, element as Json)
  }
  if (!known) for (const element of before) append(element)
  merged.set(all, byIndex)
  for (const one of added) {
    const index = indexIn(one)
    const same = index === undefined ? undefined : byIndex.get(index)
    if (same) mergeDelta(same, one as Json)
    else append(asRecord(one) ? structuredClone(one) : one)
  }
  return all
}

function indexIn(element: unknown): number | undefined {
  const index = asRecord(element)?.['index']
  return typeof index === 'number' ? index : undefined
}

function areOwnEnds(whole: Json, isAnswer: (choice: Json) => boolean): boolean {
  const choices = recordsInList(whole['choices'])
  if (choices.length === 0 || isErrorBody(whole)) return false
  return choices.every((choice) => OWN_ENDS.has(choice['finish_reason']) && isAnswer(choice))
}
