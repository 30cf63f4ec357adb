import { useAutomaticCache } from './automatic-cache.ts'
import { type Fields, asFields } from './fields.ts'
import { geminiPrompt } from './gemini-request.ts'
import { createSignature } from './gemini-signatures.ts'
import { generateOutput, type ModelOutput, type StopCause } from './model-output.ts'
import type { PromptCache } from './prompt-cache.ts'
import { type Refusal, type RefusalKind, REFUSAL_STATUS } from './refusal.ts'
import { geminiServiceTier } from './service-tier.ts'
import { estimateTokens } from './tokens.ts'
import {
  bearerToken,
  type Call,
  type Frame,
  type Reply,
  type ReplyTimeAndIds,
  type Upstream,
} from './upstream.ts'

const METHOD = /^\/models\/(.+):(\w+)$/

const FINISH_REASON: Record<StopCause, string> = {
  done: 'STOP',
  stop_text: 'STOP',
  length: 'MAX_TOKENS',
  tools: 'STOP',
}

/** A part of a response, and the number of its tokens. */
interface TimedPart {
  readonly part: Fields
  readonly tokens: number
  /** How many of the tokens are thoughts. */
  readonly thoughts: number
}

/** Creates a simulated provider of the Gemini API, which signs calls and texts, and verifies signatures. */
export function geminiUpstream(models: readonly string[], cache: PromptCache): Upstream {
  return {
    faults: 'gemini',
    bodyIfServed,
    models,
    keyOf: (headers) => String(headers['x-goog-api-key'] ?? '') || bearerToken(headers),
    reply: (body, model, stamp, { account }) => reply(body, model, stamp, cache, account),
    other: countedTokens,
    refuse,
  }
}

function bodyIfServed({ method, path, body }: Call): Fields | undefined {
  const [, model, name] = METHOD.exec(decodeURIComponent(path)) ?? []
  const isCall = method === 'POST' && (name === 'generateContent' || name === 'streamGenerateContent')
  return isCall ? { ...body, model, stream: name === 'streamGenerateContent' } : undefined
}

function countedTokens({ path, body }: Call): unknown {
  const [, model = '', name] = METHOD.exec(path) ?? []
  if (name !== 'countTokens') return undefined
  const whole = body.generateContentRequest ?? body
  const totalTokens = estimateTokens(geminiPrompt(asFields(whole), model).transcript.length)
  return { totalTokens, promptTokensDetails: [{ modality: 'TEXT', tokenCount: totalTokens }] }
}

function reply(
  body: Fields,
  model: string,
  stamp: ReplyTimeAndIds,
  cache: PromptCache,
  account: string,
): Reply {
  const prompt = geminiPrompt(body, model)
  const output = generateOutput(prompt)
  const showsThoughts = asFields(asFields(body.generationConfig).thinkingConfig).includeThoughts === true
  const parts = timedParts(output, showsThoughts, prompt.transcript, stamp)
  const { transcript } = prompt
  const cached = useAutomaticCache(cache, {
    scope: `${account}\n${model}`,
    model,
    transcript,
    lifetime: '5m',
  })
  const input = { ...inputUsage(transcript, cached), ...geminiServiceTier(body) }
  const identity = { modelVersion: model, responseId: stamp.id('') }
  const finish = { finishReason: FINISH_REASON[output.stopCause] }
  const answer = (content: readonly Fields[], ending: object, used: object): Fields => ({
    candidates: [{ content: { parts: content, role: 'model' }, ...ending, index: 0 }],
    usageMetadata: used,
    ...identity,
  })
  if (body.stream !== true) {
    const content = joined(parts.map(({ part }) => part))
    return { kind: 'whole', body: answer(content, finish, usageOf(input, parts)), tokens: output.tokens }
  }
  const frames = parts.map(({ part, tokens }, at): Frame => {
    const isLast = at === parts.length - 1
    const chunk = answer([part], isLast ? finish : {}, usageOf(input, parts.slice(0, at + 1)))
    return { text: `data: ${JSON.stringify(chunk)}\r\n\r\n`, tokens }
  })
  return { kind: 'stream', frames }
}

/**
 * Renders thoughts, text and calls. The first call has a signature; if there are no calls, an empty text at
 * the end has it.
 */
function timedParts(
  output: ModelOutput,
  showsThoughts: boolean,
  seed: string,
  stamp: ReplyTimeAndIds,
): TimedPart[] {
  const { thinking, text, calls } = output
  const hidden = showsThoughts ? 0 : thinking.length
  const shown = showsThoughts ? thinking : []
  const segment: TimedPart[] = [
    ...shown.map((one) => ({ part: { text: one, thought: true }, tokens: 1, thoughts: 1 })),
    ...text.map((one) => ({ part: { text: one }, tokens: 1, thoughts: 0 })),
    ...calls.map(({ tool, input }, at) => ({
      part: {
        functionCall: { name: tool.name, args: argumentsIn(input.join('')), id: stamp.id('') },
        ...(at === 0 && { thoughtSignature: createSignature(seed, tool.name) }),
      },
      tokens: input.length,
      thoughts: 0,
    })),
    ...(calls.length === 0
      ? [{ part: { text: '', thoughtSignature: createSignature(seed) }, tokens: 0, thoughts: 0 }]
      : []),
  ]
  return segment.map((one, at) =>
    at === 0 ? { ...one, tokens: one.tokens + hidden, thoughts: one.thoughts + hidden } : one,
  )
}

/** Joins adjacent texts of the same kind, for a response that is not streamed. */
function joined(parts: readonly Fields[]): Fields[] {
  const whole: Fields[] = []
  for (const part of parts) {
    const last = whole.at(-1)
    const isSame =
      last && typeof last.text === 'string' && typeof part.text === 'string' && last.thought === part.thought
    if (isSame) whole.splice(-1, 1, { ...last, ...part, text: String(last.text) + String(part.text) })
    else whole.push(part)
  }
  return whole
}

/** Parses a call's arguments; if they are cut off, returns an empty object. */
function argumentsIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}

function inputUsage(transcript: string, cached: number): Fields {
  const prompt = estimateTokens(transcript.length)
  return {
    promptTokenCount: prompt,
    ...(cached > 0 && { cachedContentTokenCount: cached }),
    promptTokensDetails: [{ modality: 'TEXT', tokenCount: prompt }],
  }
}

/** Reports the usage of a response that consists of these parts so far. */
function usageOf(input: Fields, parts: readonly TimedPart[]): Fields {
  const thoughts = parts.reduce((sum, part) => sum + part.thoughts, 0)
  const candidates = parts.reduce((sum, part) => sum + part.tokens, 0) - thoughts
  return {
    ...input,
    ...(candidates > 0 && { candidatesTokenCount: candidates }),
    ...(thoughts > 0 && { thoughtsTokenCount: thoughts }),
    totalTokenCount: Number(input.promptTokenCount) + candidates + thoughts,
  }
}

const STATUS: Partial<Record<RefusalKind, string>> = {
  missing_key: 'UNAUTHENTICATED',
  unknown_model: 'NOT_FOUND',
  unknown_path: 'NOT_FOUND',
  unknown_object: 'NOT_FOUND',
}

function refuse({ kind, message }: Refusal): unknown {
  const text = kind === 'unknown_model' ? `models/${message} is not found` : message
  return { error: { code: REFUSAL_STATUS[kind], message: text, status: STATUS[kind] ?? 'INVALID_ARGUMENT' } }
}
