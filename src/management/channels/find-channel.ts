import type { Channel, StoredChannel } from '../../domain/records/channel.ts'
import { GatewayError } from '../../errors.ts'
import type { Store } from '../../store/store.ts'
import {
  type ChannelObject,
  declaredId,
  declaredObject,
  FIRST_DECLARED_ID,
  storedObject,
} from './channel-object.ts'
import { idFields } from '../id-fields.ts'
import type { AdministrationParts } from '../parts.ts'
import type { LiveSettings } from '../settings/live-settings.ts'

/** The id of a channel. */
export const CHANNEL_ID = idFields('channel', 'expected ids of channels, at least one')

/** A channel: either stored (set over HTTP) or declared by the configuration. */
export type FoundChannel = { readonly stored: StoredChannel } | { readonly declared: Channel }

/** The channel with an id; throws `not_found`. */
export async function findChannel(
  { store, liveConfig }: Pick<AdministrationParts, 'store' | 'liveConfig'>,
  id: number,
): Promise<FoundChannel> {
  const declared = declaredChannel(liveConfig, id)
  return declared ? { declared } : { stored: await storedChannel(store, id) }
}

/** All channels in responses: stored ones, oldest first, followed by declared ones. */
export async function listAllChannels({
  store,
  liveConfig: { declared },
}: Pick<AdministrationParts, 'store' | 'liveConfig'>): Promise<ChannelObject[]> {
  const { channels } = await store.read('storedConfiguration')
  return [
    ...channels.map(storedObject),
    ...declared.channels.map((channel) => declaredObject(channel, declared.by)),
  ]
}

/**
 * The stored channel with an id; throws `managed_by_file` for a declared one, which is changed in the file.
 */
export function editableChannel(
  { store, liveConfig }: Pick<AdministrationParts, 'store' | 'liveConfig'>,
  id: number,
): Promise<StoredChannel> {
  refuseDeclared(liveConfig, id)
  return storedChannel(store, id)
}

/** Throws `managed_by_file` if the configuration declares the channel. */
export function refuseDeclared(liveConfig: LiveSettings, id: number): void {
  const declared = declaredChannel(liveConfig, id)
  if (declared) throw declaredError(liveConfig, declared.name)
}

/** Throws `managed_by_file` if the configuration declares a channel with that name. */
export function refuseDeclaredName(liveConfig: LiveSettings, name: string): void {
  if (liveConfig.declared.channels.some((one) => one.name === name)) throw declaredError(liveConfig, name)
}

function declaredError({ declared }: LiveSettings, name: string): GatewayError {
  const where =
    declared.by === 'environment' ? 'comes from a key in the environment' : 'is declared in gateway.yaml'
  return new GatewayError('managed_by_file', `the channel "${name}" ${where}, and can be changed there alone`)
}

function declaredChannel({ declared }: LiveSettings, id: number): Channel | undefined {
  return id < FIRST_DECLARED_ID ? undefined : declared.channels.find(({ name }) => declaredId(name) === id)
}

async function storedChannel(store: Pick<Store, 'read'>, id: number): Promise<StoredChannel> {
  const { channels } = await store.read('storedConfiguration')
  const found = channels.find((one) => one.id === id)
  if (found) return found
  throw new GatewayError('not_found', `there is no channel with the id ${id}`)
}
