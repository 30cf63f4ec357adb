import type { Streamed, Whole } from './behaviour.ts'

/** The content of a Gemini response; tool arguments are given as JSON text. */
export interface GeminiContent {
  readonly thought?: string
  readonly text?: string
  readonly calls?: readonly { readonly id?: string; readonly name: string; readonly args: string }[]
  /** The JSON text of `usageMetadata`. */
  readonly usage?: string
  readonly finish?: string
}

/** Unusual spacing and a large number reveal any rewriting by the gateway. */
const TAIL = '"modelVersion":"upstream-model",  "responseId":"answer-1","x_unknown":9007199254740993'

/** `usageMetadata` as JSON text. */
export function geminiUsage(prompt: number, candidates: number, more: object = {}): string {
  const counts = { promptTokenCount: prompt, candidatesTokenCount: candidates }
  const { thoughtsTokenCount = 0, toolUsePromptTokenCount = 0 } = more as Record<string, number>
  const total = prompt + candidates + thoughtsTokenCount + toolUsePromptTokenCount
  return JSON.stringify({ ...counts, totalTokenCount: total, ...more })
}

/** A whole response. */
export function wholeGemini(content: GeminiContent = { text: 'Hello there.' }): Whole {
  const { finish = 'STOP' } = content
  const candidate = `{"content": {"parts":[${partsOf(content).join(',')}],"role":"model"},"finishReason":"${finish}","index":0}`
  return { kind: 'whole', body: `{"candidates":[${candidate}],${counted(content)},${TAIL}}\n` }
}

/** The same content as a stream, which ends by closing the connection, as Gemini's streams do. */
export function streamedGemini(
  content: GeminiContent = { text: 'Hello there.' },
  ending: Streamed['ending'] = 'no done',
): Streamed {
  return { kind: 'stream', frames: geminiFrames(content), ending }
}

/** The frames of a stream, in order. */
export function geminiFrames(content: GeminiContent): string[] {
  const { text, finish = 'STOP' } = content
  const words =
    text === undefined
      ? partsOf(content)
      : partsOf(content).flatMap((part) =>
          part === textPart(text) ? [textPart(text.slice(0, 3)), textPart(text.slice(3))] : [part],
        )
  const chunks = words.map((part) =>
    chunkOf(`{"content": {"parts":[${part}],"role":"model"},"index":0}`, content),
  )
  return [
    ...chunks,
    chunkOf(
      `{"content": {"parts":[{"text":""}],"role":"model"},"finishReason":"${finish}","index":0}`,
      content,
    ),
  ]
}

/** One event with a candidate. */
function chunkOf(candidate: string, content: GeminiContent): string {
  return `data: {"candidates":[${candidate}],${counted(content)},${TAIL}}\r\n\r\n`
}

function counted({ usage = geminiUsage(10, 5) }: GeminiContent): string {
  return `"usageMetadata":${usage}`
}

function partsOf({ thought, text, calls = [] }: GeminiContent): string[] {
  return [
    ...(thought === undefined ? [] : [`{"text":${JSON.stringify(thought)},"thought":true}`]),
    ...(text === undefined ? [] : [textPart(text)]),
    ...calls.map(({ id, name, args }, index) => {
      const member = id === undefined ? '' : `"id":"${id}",`
      const signature = index === 0 ? ',"thoughtSignature":"c2lnbmVk"' : ''
      return `{"functionCall":{${member}"name":"${name}","args":${args}}${signature}}`
    }),
  ]
}

function textPart(text: string): string {
  return `{"text":${JSON.stringify(text)}}`
}

/** An error in Google's envelope. */
export function googleError(
  code: number,
  status: string,
  message: string,
  details: readonly object[] = [],
): string {
  return JSON.stringify({ error: { code, message, status, ...(details.length > 0 && { details }) } })
}
