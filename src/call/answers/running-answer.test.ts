import { Response, type ResponseHeaders } from '@sluice/http1'
import { describe, expect, test, vi } from 'vitest'
import { requestMemory, usedUp } from '../../../test/samples/request-memory.ts'
import type { RequestMemory } from '../../limits/request-memory.ts'
import { RunningAnswer } from './running-answer.ts'

const MIB = 1_048_576

/** A client whose connection keeps what it is sent; one that is not reading must be drained. */
class Client {
  readonly response: Response
  isReading = true
  isDestroyed = false
  #sent = ''

  constructor() {
    const send = (bytes: Buffer | string): boolean => {
      this.#sent += bytes.toString('latin1')
      return this.isReading
    }
    this.response = new Response(
      {
        isOpen: true,
        send,
        sendParts: (parts) => parts.map(send).every(Boolean),
        responseEnded: () => this.response.onConnectionEnd('finished'),
        needsUpstream() {},
        destroy: () => {
          this.isDestroyed = true
          this.response.onConnectionEnd('aborted')
        },
      },
      // Without chunks, so that the body is what was sent.
      { method: 'POST', version: '1.0', keepAlive: false, headers: {} },
    )
  }

  get body(): string {
    return this.#sent.slice(this.#sent.indexOf('\r\n\r\n') + 4)
  }

  get head(): string {
    return this.#sent.slice(0, this.#sent.indexOf('\r\n\r\n'))
  }

  leave(): void {
    this.response.onConnectionEnd('aborted')
  }

  read(): void {
    this.isReading = true
    this.response.onDrain()
  }
}

function underWay({
  memory = requestMemory(),
  maxBytes = 32 * MIB,
  stays = true,
}: {
  memory?: RequestMemory
  maxBytes?: number
  stays?: boolean
} = {}): RunningAnswer {
  return new RunningAnswer({
    memory,
    owner: { client: 1, key: 1 },
    maxBytes,
    staysWithoutClients: () => stays,
  })
}

/** Attaches a client to an answer that is held as a whole. */
function attached(answer: RunningAnswer, { response }: Client, extra?: ResponseHeaders): Promise<boolean> {
  return answer.attach(response, extra) ?? Promise.reject(new Error('it could not attach'))
}

describe('an answer under way', () => {
  test('every client of a shared answer gets all its bytes from the start, whenever the client comes', async () => {
    const answer = underWay()
    const clients = Array.from({ length: 4 }, () => new Client())
    const [first, second, third, late] = clients as [Client, Client, Client, Client]
    const over: Promise<unknown>[] = [attached(answer, first)]
    answer.recorder.writeHead(200, { 'content-type': 'text/event-stream', 'x-request-id': 'one' })
    answer.recorder.write(Buffer.from('a'))
    over.push(attached(answer, second, { 'idempotency-replayed': 'true' }))
    answer.recorder.write(Buffer.from('b'))
    expect([first.body, second.body]).toEqual(['ab', 'ab'])
    over.push(attached(answer, third))
    answer.recorder.end(Buffer.from('d'), Buffer.from('c'))
    over.push(attached(answer, late))
    await Promise.all(over)
    expect(clients.map(({ body }) => body)).toEqual(['abcd', 'abcd', 'abcd', 'abcd'])
    expect(second.head).toMatch(/^HTTP\/1.1 200 OK\r\n.*x-request-id: one\r\nidempotency-replayed: true\r\n/s)
    expect(first.head).not.toContain('replayed')
    const end = await answer.end
    expect(end).toMatchObject({ kind: 'complete', bytes: 4, head: { status: 200 } })
    expect(end.kind === 'complete' && String(Buffer.concat(end.pieces ?? []))).toBe('abcd')
    expect(answer.recorder.isFinished).toBe(true)
  })

  test('the observer of a shared answer gets all pieces of the answer up to its end, and none afterwards', () => {
    const answer = underWay()
    const pieces: string[] = []
    answer.recorder.observer = { onPiece: (piece) => pieces.push(String(piece)) }
    answer.recorder.write(Buffer.from('a'))
    answer.recorder.end('c', Buffer.from('b'))
    answer.recorder.write(Buffer.from('d'))
    expect(pieces).toEqual(['a', 'b', 'c'])
  })

  test('what keeps the clients of a shared answer waiting is sent to those who got all of it, and is no part of it', async () => {
    const answer = underWay()
    const [reading, slow, late] = [new Client(), new Client(), new Client()]
    const head = { headers: { 'content-type': 'text/event-stream' }, refusal: (body: Buffer) => body }
    const over = [attached(answer, reading, { 'idempotency-replayed': 'true' }), attached(answer, slow)]
    answer.recorder.keepAlive(Buffer.from(':'), head)
    expect(reading.head).toMatch(/content-type: text\/event-stream\r\nidempotency-replayed: true\r\n/)
    expect([answer.recorder.headersSent, answer.recorder.early]).toEqual([false, head])
    slow.isReading = false
    answer.recorder.writeHead(200, {})
    answer.recorder.write(Buffer.from('a'))
    answer.recorder.keepAlive(Buffer.from(':'), head)
    slow.read()
    over.push(attached(answer, late))
    answer.recorder.end('b')
    await Promise.all(over)
    expect([reading.body, slow.body, late.body]).toEqual([':a:b', ':ab', 'ab'])
    const end = await answer.end
    expect(end.kind === 'complete' && String(Buffer.concat(end.pieces ?? []))).toBe('ab')
  })

  test('a call shared by several clients continues after all of them have left if its answer is to be stored', async () => {
    const answer = underWay()
    const client = new Client()
    const attached = answer.attach(client.response)
    answer.recorder.write(Buffer.from('a'))
    client.leave()
    await attached
    expect(answer.clients).toBe(0)
    expect(answer.recorder.isAborted).toBe(false)
    const next = new Client()
    const over = answer.attach(next.response)
    answer.recorder.end(Buffer.from('b'))
    await over
    expect(next.body).toBe('ab')
  })

  test('a call shared by several clients is aborted when the last one has left, unless its answer is to be stored', async () => {
    const answer = underWay({ stays: false })
    const [first, second] = [new Client(), new Client()]
    const aborted = vi.fn<() => void>()
    answer.recorder.onClosed(aborted)
    void answer.attach(first.response)
    void answer.attach(second.response)
    first.leave()
    expect(answer.recorder.isAborted).toBe(false)
    second.leave()
    expect(answer.recorder.isAborted).toBe(true)
    expect(aborted).toHaveBeenCalledOnce()
    expect(await answer.end).toEqual({ kind: 'broken' })
    expect(answer.attach(new Client().response)).toBeUndefined()
  })

  test('an error before a shared answer starts is sent to all its clients, and one after its start ends their connections', async () => {
    const refused = underWay()
    const [first, second] = [new Client(), new Client()]
    const attached = [refused.attach(first.response), refused.attach(second.response)]
    refused.fail(new Error('no quota'), first.response)
    for (const one of attached) await expect(one).rejects.toThrow('no quota')
    expect(await refused.end).toMatchObject({ kind: 'failed' })
    const broken = underWay()
    const third = new Client()
    const over = broken.attach(third.response)
    broken.recorder.write(Buffer.from('a'))
    broken.recorder.destroy()
    await over
    expect(third.isDestroyed).toBe(true)
    expect(await broken.end).toEqual({ kind: 'broken' })
  })

  test('a client that reads on after its shared answer has failed is sent nothing more', async () => {
    const answer = underWay()
    const slow = new Client()
    slow.isReading = false
    const over = attached(answer, slow)
    answer.recorder.write(Buffer.from('a'))
    answer.recorder.write(Buffer.from('b'))
    answer.fail(new Error('not charged'), slow.response)
    slow.read()
    await expect(over).rejects.toThrow('not charged')
    expect(slow.body).toBe('a')
  })

  test("a shared answer that breaks off before a client was sent anything leaves that client's connection open", async () => {
    const answer = underWay()
    const client = new Client()
    const over = attached(answer, client)
    answer.recorder.writeHead(200, {})
    answer.recorder.destroy()
    expect(await over).toBe(false)
    expect([client.isDestroyed, client.response.headersSent]).toEqual([false, false])
    expect(answer.isLost).toBe(true)
    expect(answer.attach(client.response)).toBeUndefined()
  })

  test('a shared answer above its maximum size is no longer kept: attached clients get the rest, and later ones cannot attach', async () => {
    const memory = requestMemory()
    const answer = underWay({ memory, maxBytes: 10 })
    const client = new Client()
    const over = answer.attach(client.response)
    answer.recorder.write(Buffer.from('12345'))
    expect(memory.held).toBeGreaterThan(0)
    answer.recorder.write(Buffer.from('678901'))
    expect(memory.held).toBe(0)
    expect(answer.attach(new Client().response)).toBeUndefined()
    answer.recorder.end(Buffer.from('x'))
    await over
    expect(client.body).toBe('12345678901x')
    expect(await answer.end).toMatchObject({ kind: 'complete', pieces: undefined, bytes: 12 })
  })

  test('a shared answer is no longer kept for later clients once the memory share of its first client is used up', () => {
    const memory = requestMemory()
    const answer = underWay({ memory })
    void answer.attach(new Client().response)
    const release = usedUp(memory, 1)
    answer.recorder.write(Buffer.from('a'))
    expect(answer.isWhole).toBe(false)
    release()
    expect(memory.held).toBe(0)
  })

  test('without memory for a shared answer, its slowest client may be 64 KiB behind', () => {
    const memory = requestMemory()
    const answer = underWay({ memory })
    usedUp(memory, 1)
    const slow = new Client()
    slow.isReading = false
    void answer.attach(slow.response)
    const piece = Buffer.alloc(60_000, 'x')
    // The first piece is in the connection.
    expect([1, 2, 3].map(() => answer.recorder.write(piece))).toEqual([true, true, false])
  })

  test('a slow client delays a shared answer only once the answer is too large to be kept, and until the client leaves', () => {
    const answer = underWay({ maxBytes: 2 * MIB })
    const [slow, quick] = [new Client(), new Client()]
    slow.isReading = false
    void answer.attach(slow.response)
    void answer.attach(quick.response)
    const piece = Buffer.alloc(MIB, 'x')
    const drained = vi.fn<() => void>()
    expect(answer.recorder.write(piece)).toBe(true)
    expect(answer.recorder.write(piece)).toBe(true)
    expect(answer.recorder.write(piece)).toBe(false)
    answer.recorder.whenDrained(drained)
    expect(quick.body).toHaveLength(3 * MIB)
    slow.read()
    expect(slow.body).toHaveLength(3 * MIB)
    expect(drained).toHaveBeenCalledOnce()
    slow.isReading = false
    answer.recorder.write(piece)
    answer.recorder.write(piece)
    expect(answer.recorder.write(piece)).toBe(false)
    answer.recorder.whenDrained(drained)
    slow.leave()
    expect(drained).toHaveBeenCalledTimes(2)
  })

  test('a client of a shared answer that reads nothing for 50 seconds is disconnected', () => {
    vi.useFakeTimers()
    const answer = underWay()
    const client = new Client()
    client.isReading = false
    void answer.attach(client.response)
    answer.recorder.write(Buffer.from('a'))
    vi.advanceTimersByTime(49_000)
    expect(client.isDestroyed).toBe(false)
    vi.advanceTimersByTime(2_000)
    expect(client.isDestroyed).toBe(true)
    vi.useRealTimers()
  })

  test('the memory of a shared answer that was released is freed once all its clients have read it', async () => {
    const memory = requestMemory()
    const answer = underWay({ memory })
    const slow = new Client()
    slow.isReading = false
    const over = answer.attach(slow.response)
    answer.recorder.write(Buffer.alloc(MIB, 'a'))
    answer.recorder.end(Buffer.alloc(MIB, 'b'))
    answer.release()
    expect(memory.held).toBeGreaterThan(MIB)
    slow.read()
    await over
    expect(slow.body).toHaveLength(2 * MIB)
    expect(memory.held).toBe(0)
  })
})
