import { describe, expect, test } from 'vitest'
import type { ResponseHeaders } from './response-head.ts'
import { type RequestTraits, Response } from './response.ts'

/** A request's traits, and the headers of its response. */
type Case = Partial<RequestTraits> & { readonly written?: ResponseHeaders }

/** The writes that a response makes for its pieces, as text without the date. */
function writesOf({ written = {}, ...traits }: Case, use: (response: Response) => void): string[] {
  const writes: string[] = []
  const note = (parts: readonly (Buffer | string)[]): boolean => {
    writes.push(parts.map((part) => part.toString('latin1')).join(''))
    return true
  }
  const response = new Response(
    {
      isOpen: true,
      send: (bytes) => note([bytes]),
      sendParts: note,
      responseEnded: () => {},
      needsUpstream: () => {},
      destroy: () => {},
    },
    { method: 'POST', version: '1.1', keepAlive: true, headers: {}, ...traits },
  )
  use(response.writeHead(200, written))
  return writes.map((text) => text.replace(/date: [^\r]*\r\n/, ''))
}

describe('a response whose end is written with the piece before it', () => {
  const before = Buffer.from('data: 1\n\n')
  const last = Buffer.from('data: [DONE]\n\n')
  const [once, twice] = [
    (response: Response) => response.end(last, before),
    (response: Response) => {
      response.write(before)
      response.end(last)
    },
  ]

  test('the last piece and end of a chunked response, sent in one write, have the same bytes as if they were sent in two writes', () => {
    const writes = writesOf({}, once)
    expect(writes).toEqual([writesOf({}, twice).join('')])
    expect(writes[0]?.split('\r\n\r\n')[1]).toBe('9\r\ndata: 1\n\n\r\ne\r\ndata: [DONE]\n\n\r\n0')
  })

  test('the last piece and the end of a chunked response are sent in one write, also if earlier pieces were already sent', () => {
    const begin = (response: Response): Response => {
      response.write(Buffer.from('data: 0\n\n'))
      return response
    }
    const writes = writesOf({}, (response) => once(begin(response)))
    expect(writes).toHaveLength(2)
    expect(writes.join('')).toBe(writesOf({}, (response) => twice(begin(response))).join(''))
  })

  test.each<[string, Case]>([
    ['of HTTP/1.0', { version: '1.0' }],
    ['to HEAD', { method: 'HEAD' }],
    ['whose length is stated', { written: { 'content-length': '23' } }],
  ])(
    'a response whose last piece and end are sent in one write has the same bytes as with two writes: %s',
    (_, traits) => {
      expect(writesOf(traits, once).join('')).toBe(writesOf(traits, twice).join(''))
    },
  )

  test.each([
    ['nothing before it', undefined, last],
    ['an empty piece before it', Buffer.alloc(0), last],
    ['nothing in it', before, undefined],
  ])(
    'a response whose last piece and end are sent in one write has the same bytes as with two writes, also with %s',
    (_, piece, rest) => {
      const together = writesOf({}, (response) => response.end(rest, piece))
      const apart = writesOf({}, (response) => {
        if (piece) response.write(piece)
        response.end(rest)
      })
      expect(together.join('')).toBe(apart.join(''))
    },
  )
})

test('headers that are computed when the response head is sent do not replace headers that the response already has', () => {
  let remaining = 2
  const [head = ''] = writesOf({ written: { 'retry-after': '1' } }, (response) => {
    response.headersAtHead = () => ({ 'retry-after': '9', remaining: String(remaining) })
    remaining = 1
    response.end('hi')
  })
  expect(head).toContain('\r\nretry-after: 1\r\nremaining: 1\r\n')
  expect(head).not.toContain('retry-after: 9')
})

describe('bytes that keep a response alive', () => {
  const early = {
    headers: { 'x-known': 'yes' },
    refusal: (body: Buffer) => Buffer.concat([Buffer.from('data: '), body]),
  }
  const alive = Buffer.from(': alive\n\n')

  /** The body of a chunked response and what its observer gets, without the head. */
  function sent(use: (response: Response) => void): { readonly bytes: string; readonly observed: string } {
    const bytes: string[] = []
    const observed: string[] = []
    const response = new Response(
      {
        isOpen: true,
        send: (part) => bytes.push(part.toString('latin1')) > 0,
        sendParts: (parts) => bytes.push(...parts.map((part) => part.toString('latin1'))) > 0,
        responseEnded: () => {},
        needsUpstream: () => {},
        destroy: () => {},
      },
      { method: 'POST', version: '1.0', keepAlive: true, headers: {} },
    )
    response.observer = { onPiece: (piece) => observed.push(piece.toString()) }
    use(response)
    return { bytes: bytes.join(''), observed: observed.join('') }
  }

  test('they send the head with status 200 once, and the later head is dropped', () => {
    const { bytes, observed } = sent((response) => {
      response.keepAlive(alive, early)
      expect([response.headersSent, response.isHeadSent]).toEqual([false, true])
      response.keepAlive(alive, early)
      response.writeHead(200, { 'x-late': 'yes' }).write(Buffer.from('data: 1\n\n'))
      response.keepAlive(alive, early)
      response.end('data: 2\n\n')
      response.keepAlive(alive, early)
    })
    const [head, body] = bytes.split(/\r\n\r\n(.*)/s)
    expect(head).toMatch(/^HTTP\/1.1 200 OK\r\n/)
    expect(head).toContain('x-known: yes')
    expect(head).not.toContain('x-late')
    expect(body).toBe(': alive\n\n: alive\n\ndata: 1\n\n: alive\n\ndata: 2\n\n')
    expect(observed).toBe('data: 1\n\ndata: 2\n\n')
  })

  test.each([
    ['in one write', (response: Response) => response.end('{}')],
    [
      'before its end',
      (response: Response) => {
        response.write(Buffer.from('{}'))
        response.end()
      },
    ],
  ])('a refusal behind them is sent in the form of the early head, %s', (_, refuse) => {
    const { bytes, observed } = sent((response) => {
      response.keepAlive(alive, early)
      refuse(response.writeHead(502, {}))
      expect(response.status).toBe(200)
    })
    expect(bytes.split('\r\n\r\n')[1]).toBe(': alive\n\ndata: {}')
    expect(observed).toBe('data: {}')
  })

  test('a refusal without them keeps its status and body', () => {
    const { bytes } = sent((response) => response.writeHead(502, {}).end('{}'))
    expect(bytes).toMatch(/^HTTP\/1.1 502 [^]*\r\n\r\n\{\}$/)
  })
})
