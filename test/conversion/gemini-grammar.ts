import { expect } from 'vitest'

// oxlint-disable-next-line typescript/no-explicit-any -- JSON of a stream
type Fields = Readonly<Record<string, any>>

/**
 * Asserts that a client can read the stream of a response: one line of data a frame, ended by CR LF; every
 * chunk with a candidate that has a part, and one kind of content a part; the same name and id in all; one
 * finish reason, in the last chunk; or an error at the end. `complete` states which of the two is expected.
 */
export function checkGeminiStream(text: string, complete: boolean): void {
  expect(text.endsWith('\r\n\r\n')).toBe(true)
  const chunks = text
    .slice(0, -4)
    .split('\r\n\r\n')
    .map((frame) => {
      expect(frame).toMatch(/^data: [^\r\n]*$/)
      return JSON.parse(frame.slice('data: '.length)) as Fields
    })
  checkChunks(chunks, complete)
}

/** Asserts the same of a stream that is one array. */
export function checkGeminiArray(text: string, complete: boolean): void {
  checkChunks(JSON.parse(text) as Fields[], complete)
}

function checkChunks(chunks: readonly Fields[], complete: boolean): void {
  const last = chunks.at(-1) as Fields
  for (const chunk of complete ? chunks : chunks.slice(0, -1)) {
    expect(chunk['candidates']).toHaveLength(1)
    const [candidate] = chunk['candidates'] as Fields[]
    expect(candidate?.['content'].role).toBe('model')
    const parts = candidate?.['content'].parts as Fields[]
    expect(parts.length).toBeGreaterThan(0)
    for (const part of parts) checkPart(part)
    expect(candidate?.['finishReason'] !== undefined).toBe(complete && chunk === last)
    expect(chunk['modelVersion']).toBe(last['modelVersion'] ?? chunk['modelVersion'])
    expect(chunk['responseId']).toBe(last['responseId'] ?? chunk['responseId'])
  }
  if (complete) return
  expect(last['error'].code).toBeGreaterThanOrEqual(400)
  expect(last['error'].code).toBeLessThanOrEqual(599)
  expect(last['error'].status).toMatch(/^[A-Z_]+$/)
}

function checkPart(part: Fields): void {
  const kinds = Object.keys(part).filter((key) => key !== 'thought' && key !== 'thoughtSignature')
  expect(kinds).toHaveLength(1)
  if (!part['functionCall']) return
  const { name, args } = part['functionCall'] as Fields
  expect(typeof name).toBe('string')
  expect(typeof args).toBe('object')
}
