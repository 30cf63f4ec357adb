import { setTimeout as delay } from 'node:timers/promises'
import { TransportError } from '@sluice/http1'
import { type BatchConnection, idIn, ProviderRefused } from './connection.ts'
import { openaiLike } from './openai.ts'

/** Milliseconds between two looks at an uploaded file, at first and at most, and until which it must be checked. */
const LOOK_MS = 500
const MAX_LOOK_MS = 10_000
const MAX_CHECK_MS = 900_000

/** The batch API of Azure OpenAI: like that of OpenAI, but an uploaded file is checked before a batch can be made of it. */
export const azureBatches = openaiLike({
  maxLines: 100_000,
  pathOf: ({ api_version: version }, path) => (version === null ? `/v1${path}` : path),
  uploaded: whenProcessed,
})

async function whenProcessed(at: BatchConnection, uploaded: Record<string, unknown>): Promise<string> {
  const id = idIn(uploaded)
  const startMs = performance.now()
  let waitMs = LOOK_MS
  for (let file = uploaded; ; file = await at.get(`/files/${encodeURIComponent(id)}`)) {
    const { status } = file
    if (status === 'processed') return id
    if (status === 'error')
      throw new ProviderRefused(400, Buffer.from(JSON.stringify(errorOf(file))), undefined)
    if (performance.now() - startMs > MAX_CHECK_MS)
      throw new TransportError('an uploaded file was not processed in time', false)
    await delay(waitMs, undefined, { ref: false })
    waitMs = Math.min(MAX_LOOK_MS, 2 * waitMs)
  }
}

function errorOf({ status_details: details }: Record<string, unknown>): object {
  return { error: { message: typeof details === 'string' ? details : 'the uploaded file was refused' } }
}
