import { createHash, randomBytes } from 'node:crypto'
import { z } from 'zod'
import { subscriptionsOf } from '../../alerts/alerts.ts'
import {
  ALERT_FORMATS,
  ALERT_TYPES,
  type AlertTarget,
  mailAddresses,
  receiverHost,
} from '../../domain/alert.ts'
import { asObject, type Json } from '../../domain/json.ts'
import type { StoredConfiguration } from '../../domain/settings.ts'
import { TEXT_BYTE_LIMITS } from '../../domain/text-length.ts'
import { GatewayError } from '../../errors.ts'
import { repeatIfChanged } from '../expected-version.ts'
import { textField } from '../input-fields.ts'
import type { AdministrationServices } from '../services.ts'

/** Maximum number of receivers that can be added over HTTP. */
const MAX_RECEIVERS = 50
const SECTION = 'alerts'

/** An alert receiver as responses show it, without URL and secret. `docs/administration.md: Alerts`. */
export const receiverSchema = z.object({
  id: z.string(),
  host: z.string(),
  format: z.enum([...ALERT_FORMATS, 'mail']),
  events: z.array(z.enum(ALERT_TYPES)),
  managed: z.boolean(),
  managed_by: z.string(),
  waiting: z.int().describe('alerts that are not delivered yet'),
  last: z
    .object({
      at: z.int().describe('Unix seconds'),
      type: z.string(),
      status: z.int().nullable(),
      message: z.string().describe('why it failed; empty if it was accepted'),
    })
    .nullable()
    .describe('the last attempt of this process'),
})

type Receiver = z.output<typeof receiverSchema>

/** The result of testing a receiver. */
export const receiverTestSchema = z.object({
  success: z.boolean(),
  status: z.int().nullable(),
  message: z.string(),
  time: z.number().describe('seconds'),
})

const EVENTS = `expected a list of ${ALERT_TYPES.join(', ')}`
const urlField = textField(
  'expected an http:// or https:// URL, or mailto: with addresses',
  TEXT_BYTE_LIMITS.plain,
)
const eventsField = z
  .array(z.enum(ALERT_TYPES, { error: EVENTS }), { error: EVENTS })
  .min(1, { error: EVENTS })
const idField = textField('expected the id of a receiver', TEXT_BYTE_LIMITS.plain).regex(/^[0-9a-f]{16}$/, {
  error: 'expected the id of a receiver',
})

const FORMATS = `expected one of ${ALERT_FORMATS.join(', ')}`
const formatField = z.enum(ALERT_FORMATS, { error: FORMATS })

/** Fields of a receiver to be added. */
export const newReceiver = z.object(
  { url: urlField, events: eventsField, format: formatField.nullish() },
  { error: 'expected an object with url and events' },
)

/** Changes of a receiver; absent fields stay unchanged. */
export const changedReceiver = z.object(
  { id: idField, url: urlField.nullish(), events: eventsField.nullish(), format: formatField.nullish() },
  { error: 'expected an object with the id of a receiver' },
)

/** Path parameters with the id of a receiver. */
export const receiverPath = z.object({ id: idField })

type ReceiverServices = Pick<AdministrationServices, 'store' | 'settings' | 'liveConfig' | 'alerts'>

/** A receiver that is in effect, from gateway.yaml or added over HTTP, with its id. */
interface NamedTarget {
  readonly id: string
  readonly target: AlertTarget
  readonly isStored: boolean
}

/** All receivers: first those in gateway.yaml, then those added over HTTP. */
export async function listReceivers({
  store,
  settings,
  alerts,
  ...services
}: ReceiverServices): Promise<Receiver[]> {
  const named = await namedTargets({ store, settings, alerts, ...services })
  const tags = named.map(({ target }) => alerts.tag(target.url))
  const waiting = await store.read('waitingAlerts', { tags })
  return named.map(({ id, target, isStored }, index) => {
    const tag = tags[index] ?? ''
    const last = alerts.deliveries.of(tag)
    return {
      id,
      host: receiverHost(target.url),
      format: mailAddresses(target.url) ? ('mail' as const) : target.format,
      events: [...target.types],
      managed: !isStored,
      managed_by: isStored ? '' : 'gateway.yaml',
      waiting: waiting.find((one) => one.tag === tag)?.count ?? 0,
      last: last ? { at: last.at, type: last.type, status: last.status, message: last.reason ?? '' } : null,
    }
  })
}

async function namedTargets({ store, settings }: ReceiverServices): Promise<NamedTarget[]> {
  const { entries } = await store.read('storedConfiguration')
  const ids = new Map(
    entries.flatMap(({ section, name, value }) =>
      section === SECTION ? [[asObject(value)['url'], name] as const] : [],
    ),
  )
  return settings().alerts.map((target) => {
    const id = ids.get(target.url)
    return { id: id ?? fileId(target), target, isStored: id !== undefined }
  })
}

/** The id of a receiver in gateway.yaml: a hash that only those who know its secret can compute. */
function fileId({ url, secret }: AlertTarget): string {
  return createHash('sha256').update(`${secret}\n${url}`).digest('hex').slice(0, 16)
}

/** Adds a receiver. Resolves to its signing secret, which is never shown again. */
export async function addReceiver(
  services: ReceiverServices,
  { url, events, format }: z.output<typeof newReceiver>,
): Promise<{ id: string; secret: string }> {
  const id = randomBytes(8).toString('hex')
  const secret = `whsec_${randomBytes(32).toString('base64')}`
  await setReceiver(services, id, () => ({ url, secret, events, ...(format && { format }) }))
  return { id, secret }
}

/** Changes the URL, the events or the format of a receiver that was added over HTTP. */
export async function changeReceiver(
  services: ReceiverServices,
  { id, url, events, format }: z.output<typeof changedReceiver>,
): Promise<void> {
  await requireStoredReceiver(services, id)
  await setReceiver(services, id, (before = receiverNotFound()) => ({
    ...asObject(before),
    ...(url && { url }),
    ...(events && { events }),
    ...(format && { format }),
  }))
}

/** Removes a receiver that was added over HTTP. Alerts that are waiting to be delivered to it are dropped. */
export async function removeReceiver(services: ReceiverServices, id: string): Promise<void> {
  await requireStoredReceiver(services, id)
  await setReceiver(services, id, () => undefined)
}

async function setReceiver(
  { store, liveConfig, settings, alerts }: ReceiverServices,
  id: string,
  next: (before: Json | undefined) => Json | undefined,
): Promise<void> {
  await repeatIfChanged(undefined, () => {
    let before: Json | undefined
    let value: Json | undefined
    return liveConfig.change(
      (stored) => {
        before = stored.entries.find(({ section, name }) => section === SECTION && name === id)?.value
        value = next(before)
        return { ...stored, entries: entriesWith(stored, id, value) }
      },
      () =>
        store.write('setStoredSettings', {
          changes: [{ section: SECTION, name: id, value }],
          expected: [{ section: SECTION, name: id, value: before }],
        }),
    )
  })
  // The database records only alerts that a receiver wants, so it must know the new receivers before the next
  // call.
  const targets = settings().alerts.map(({ url, types }) => ({ tag: alerts.tag(url), types }))
  await store.write('subscribeAlerts', subscriptionsOf(targets, settings()))
}

function entriesWith(
  { entries }: StoredConfiguration,
  id: string,
  value: Json | undefined,
): StoredConfiguration['entries'] {
  const others = entries.filter(({ section, name }) => section !== SECTION || name !== id)
  if (value === undefined) return others
  const added = others.filter(({ section }) => section === SECTION).length
  if (added >= MAX_RECEIVERS)
    throw new GatewayError('invalid_request', `expected at most ${MAX_RECEIVERS} receivers`)
  return [...others, { section: SECTION, name: id, value }]
}

async function requireStoredReceiver(services: ReceiverServices, id: string): Promise<void> {
  if ((await receiverOf(services, id)).isStored) return
  throw new GatewayError(
    'managed_by_file',
    'this receiver is set in gateway.yaml, and can be changed there alone',
  )
}

async function receiverOf(services: ReceiverServices, id: string): Promise<NamedTarget> {
  return (await namedTargets(services)).find((one) => one.id === id) ?? receiverNotFound()
}

function receiverNotFound(): never {
  throw new GatewayError('not_found', 'there is no receiver with this id')
}

/**
 * Sends a signed event `test` once to a receiver, whether gateway.yaml declares it or it was added over HTTP.
 */
export async function testReceiver(
  services: ReceiverServices,
  id: string,
): Promise<z.output<typeof receiverTestSchema>> {
  const { target } = await receiverOf(services, id)
  // The module is imported on demand, because most gateways have no receivers.
  const { createAlertAgent, sendAlert } = await import('../../alerts/alert-sender.ts')
  const agent = createAlertAgent(1)
  const [startedMs, createdMs] = [performance.now(), Date.now()]
  const event = { id: `msg_${randomBytes(16).toString('hex')}`, type: 'test', data: '{}' }
  try {
    const alert = { ...event, createdMs, firstMs: createdMs, attempts: 1 }
    const attempt = await sendAlert(
      target,
      alert,
      agent,
      new AbortController().signal,
      services.settings().options.smtp,
    )
    services.alerts.deliveries.note(services.alerts.tag(target.url), attempt)
    const { status, reason } = attempt
    const time = Math.round(performance.now() - startedMs) / 1000
    return { success: reason === undefined, status, message: reason ?? '', time }
  } finally {
    await agent.destroy()
  }
}
