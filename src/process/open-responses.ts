import type { OpenedLedger } from '../bootstrap/opened-ledger.ts'
import { BackgroundCalls, type BackgroundParts } from '../relay/state/background-calls.ts'
import { SignatureStore } from '../relay/state/signature-store.ts'
import { ResponseStore } from '../relay/state/response-store.ts'
import { type Secrets, tagOf } from '../store/secrets.ts'

/** Responses and signatures that later calls may refer to, and calls whose responses are being made. */
interface OpenedResponses {
  readonly responses: ResponseStore
  readonly background: BackgroundCalls
  readonly signatures: SignatureStore
}

/** Opens the store of responses, and takes up the calls that an earlier run left in the background. */
export async function openResponses(
  { store, others }: Pick<OpenedLedger, 'store' | 'others'>,
  secrets: Secrets,
  parts: Omit<BackgroundParts, 'responses' | 'isShared'>,
): Promise<OpenedResponses> {
  const tag = (purpose: Parameters<typeof tagOf>[1], text: string): string => tagOf(secrets, purpose, text)
  const isShared = others !== undefined
  const responses = new ResponseStore({
    rows: store,
    tag,
    onLost: () => parts.metrics.lostResponses.add(1),
  })
  const signatures = new SignatureStore({ rows: store, tag, isShared, metrics: parts.metrics })
  const background = new BackgroundCalls({ ...parts, responses, isShared })
  await background.takeUp()
  return { responses, background, signatures }
}
