import type { IncomingMessage, ServerResponse } from 'node:http'
import { Refusal } from '../refusal.ts'
import type { BatchWork } from './batch-work.ts'
import { type Exchange, jsonOf, sendJson } from './exchange.ts'
import type { SimulatedBatch } from './simulated-batch.ts'

/** An API for batches of a provider. */
export interface BatchApi {
  readonly work: BatchWork
  /** Answers a request; resolves to false if it is for none of the paths, and then has read nothing. */
  serve(exchange: Exchange): Promise<boolean>
}

const CONTROL = '/simulate'
const INVOICE = /^\/simulate\/invoice(?:\/(.+))?$/

/**
 * Answers requests for batches, and those by which tests control them and read what the provider bills. Throws `Refusal`;
 * resolves to false for other requests.
 */
export async function serveBatches(
  api: BatchApi,
  account: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<boolean> {
  const { pathname: path, searchParams: query } = new URL(request.url ?? '', 'http://localhost')
  const { method = '' } = request
  const { control } = api.work
  if (path === CONTROL) {
    if (method === 'POST') control.set(await jsonOf(request))
    sendJson(response, control.state)
    return true
  }
  const [isInvoice, id] = INVOICE.exec(path) ?? []
  if (isInvoice !== undefined) {
    const all = api.work.batches().toReversed()
    if (id === undefined) sendJson(response, { batches: all.map(invoiceOf) })
    else {
      const batch = all.find(({ made }) => made.id === decodeURIComponent(id))
      if (!batch) throw new Refusal('unknown_object', `No batch with the id ${id}`)
      const lines = [...batch.billedLines()].map(({ customId, model, billed }) => ({
        custom_id: customId,
        model,
        tier: 'batch',
        ...billed,
      }))
      sendJson(response, { ...invoiceOf(batch), items: lines })
    }
    return true
  }
  return api.serve({ request, response, method, path, query, account })
}

/** What the provider bills for a batch: the tokens of all its lines, at the tier `batch`. */
function invoiceOf(batch: SimulatedBatch): object {
  const { made, phase, lines, billed } = batch
  const billedLines = [...batch.billedLines()].length
  const head = { id: made.id, account: made.account, endpoint: made.endpoint, stated: made.stated }
  return { ...head, status: phase, lines: lines.length, billed_lines: billedLines, tier: 'batch', ...billed }
}
