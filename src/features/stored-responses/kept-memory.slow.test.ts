import { expect, test } from 'vitest'
import { startOwnServer } from '../../../test/fixtures/own-server.ts'
import { rawConnection } from '../../../test/fixtures/raw-socket.ts'
import { keptStore, responseRow } from '../../../test/stores/kept.ts'
import { openedStore } from '../../../test/stores/rows.ts'
import type { StoredContent, StoredResponse } from '../../domain/stored-response.ts'
import { scanObject } from '@sluice/wire/json/json-scan'
import type { RowStore } from '../../store/store.ts'
import type { RequestReaderContext } from '../../call/dialects/dialect.ts'
import { findPreviousResponse } from './resolve-previous-response.ts'
import { withStoredItems } from './item-references.ts'
import {
  type StoredResponseRequest,
  type ResponseRequestServices,
  ResponseRequests,
} from './response-requests.ts'
import { ResponseStore } from './response-store.ts'

const FIRST = `resp_${'a'.repeat(32)}`
const SECOND = `resp_${'b'.repeat(32)}`
const CONTENT_BYTES = 100_000
/** Reads that load stored contents. */
const LOADING = new Set(['findKept', 'readKeptPart'])

const kept = (id: string, previousId: string | null): StoredResponse =>
  responseRow(id, { userId: 1, previousId, createdMs: 0, expiresMs: Number.MAX_SAFE_INTEGER })

function contentOf(id: string, bytes = CONTENT_BYTES): StoredContent {
  const output = [{ id: `msg_${id.slice('resp_'.length)}000`, type: 'message', content: 'x'.repeat(bytes) }]
  return { input: '[]', response: JSON.stringify({ id, output }) }
}

function responsesOn(rows: Pick<RowStore, 'read' | 'write'>): ResponseStore {
  return new ResponseStore({ rows, tag: () => 'tag', kept: keptStore(rows), onLost: () => {} })
}

/** Two kept responses, and a log of what is read of them and of the memory that is allocated. */
async function stage({ bodyLimit = 10_000_000, first = contentOf(FIRST) } = {}) {
  const store = await openedStore()
  await responsesOn(store).keep(() => ({
    response: kept(FIRST, null),
    content: first,
  }))
  await responsesOn(store).keep(() => ({ response: kept(SECOND, FIRST), content: contentOf(SECOND) }))
  const steps: (string | number)[] = []
  const rows: Pick<RowStore, 'read' | 'write'> = {
    read(name, ...input) {
      steps.push(name)
      return store.read(name, ...input)
    },
    write: (name, ...input) => store.write(name, ...input),
  }
  const responses = responsesOn(rows)
  const reading = {
    begin: () => Promise.resolve(),
    hold: (bytes: number) => Promise.resolve(steps.push(bytes)),
    end: () => steps.push('end'),
  }
  const reader = {
    caller: { user: { id: 1 } },
    settings: { options: { keep_responses: 1, body_limit: bodyLimit } },
    readStore: () => reading,
    holdCopies: () => Promise.resolve(steps.push('copies')),
  } as unknown as RequestReaderContext
  return { responses, reader, reading, steps }
}

/** Memory that was allocated before contents were loaded. */
function heldBeforeLoading(steps: readonly (string | number)[]): number {
  const loading = steps.findIndex((step) => LOADING.has(String(step)))
  expect(loading).toBeGreaterThan(0)
  return steps.slice(0, loading).reduce<number>((sum, step) => sum + (typeof step === 'number' ? step : 0), 0)
}

test('a stored conversation reserves its memory before it is loaded from the database', async () => {
  const { responses, reader, steps } = await stage()
  const scan = scanObject(Buffer.from(`{"model":"m","input":"hi","previous_response_id":"${SECOND}"}`))
  expect((await findPreviousResponse(scan, SECOND, reader, responses)).kind).toBe('kept')
  expect(heldBeforeLoading(steps)).toBeGreaterThan(2 * CONTENT_BYTES)
  expect(steps.at(-1)).toBe('end')
})

test('a stored conversation is loaded from the database only once there is memory for its copies', async () => {
  const { responses, reader, steps } = await stage()
  const scan = scanObject(Buffer.from(`{"model":"m","input":"hi","previous_response_id":"${SECOND}"}`))
  await findPreviousResponse(scan, SECOND, reader, responses)
  const waited = steps.indexOf('copies')
  expect(waited).toBeGreaterThan(0)
  expect(waited).toBeLessThan(steps.findIndex((step) => LOADING.has(String(step))))
})

test('a stored conversation larger than the maximum request body is refused before it is loaded from the database', async () => {
  const { responses, reader, steps } = await stage({ bodyLimit: CONTENT_BYTES / 2 })
  const scan = scanObject(Buffer.from(`{"model":"m","input":"hi","previous_response_id":"${SECOND}"}`))
  await expect(findPreviousResponse(scan, SECOND, reader, responses)).rejects.toMatchObject({
    code: 'previous_response_not_found',
  })
  expect(steps.filter((step) => LOADING.has(String(step)) || typeof step === 'number')).toEqual([])
})

test('a stored conversation with more than 2,000,000 JSON values with the request that continues it is refused', async () => {
  const output = `{"type":"message","content":[${Array.from({ length: 2_000_001 }, () => 0).join(',')}]}`
  const { responses, reader } = await stage({ first: { input: '[]', response: `{"output":[${output}]}` } })
  const scan = scanObject(Buffer.from(`{"model":"m","input":"hi","previous_response_id":"${SECOND}"}`))
  await expect(findPreviousResponse(scan, SECOND, reader, responses)).rejects.toMatchObject({
    code: 'previous_response_not_found',
    message: expect.stringContaining('2000000 JSON values'),
  })
})

test('a request with more than 2,000,000 JSON values with the stored items that it refers to is refused', async () => {
  const id = `msg_${'a'.repeat(32)}000`
  const output = `{"id":"${id}","content":[${Array.from({ length: 2_000_001 }, () => 0).join(',')}]}`
  const { responses, reader } = await stage({ first: { input: '[]', response: `{"output":[${output}]}` } })
  const scan = scanObject(
    Buffer.from(JSON.stringify({ model: 'm', input: [{ type: 'item_reference', id }] })),
  )
  await expect(withStoredItems(scan, reader, responses)).rejects.toMatchObject({ code: 'request_too_large' })
})

test.each(['retrieve', 'inputItems'] as const)(
  'a stored response reserves memory for its parts before they are loaded: %s',
  async (way) => {
    const { responses, reading, steps } = await stage()
    const requests = new ResponseRequests({ responses } as unknown as ResponseRequestServices)
    const asked = { reading, response: kept(FIRST, null), isKept: true, query: new URLSearchParams() }
    using own = await startOwnServer((_, response) => {
      void requests[way]({ ...asked, incoming: { id: 'call', response } } as unknown as StoredResponseRequest)
    })
    const request = 'GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n'
    expect(await rawConnection(own.port, request).closed()).toMatch(/^HTTP\/1\.1 200 OK/)
    expect(heldBeforeLoading(steps)).toBe(4 * 1024 * 1024)
  },
)

test('stored items that a request references reserve their memory before they are loaded', async () => {
  const { responses, reader, steps } = await stage()
  const input = ['a', 'b'].map((key) => ({ type: 'item_reference', id: `msg_${key.repeat(32)}000` }))
  const scan = scanObject(Buffer.from(JSON.stringify({ model: 'm', input })))
  await withStoredItems(scan, reader, responses)
  // First each item, then the request with both.
  expect(steps.filter((step) => typeof step === 'number' && step > CONTENT_BYTES)).toHaveLength(3)
  expect(steps.at(-1)).toBe('end')
})
