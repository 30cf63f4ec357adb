import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { Channel, StoredChannel } from '../../domain/records/channel.ts'
import { GatewayError } from '../../errors.ts'
import { maskedKey } from '../../domain/api-key.ts'
import { HISTORY_MINUTES } from '../../upstreams/share-history.ts'
import { TEXT_BYTE_LIMITS } from '../../domain/text-length.ts'
import { textField } from '../input-fields.ts'
import type { AdministrationServices } from '../services.ts'
import { replaceChannel } from './change-channels.ts'
import { channelDefinition, publicPartOfKey, parseKeysOfType, requireType } from './channel-definition.ts'
import { CHANNEL_ID_SCHEMAS, fieldsOfStoredChannel, findChannel } from './channel-object.ts'
import { channelType } from './channel-types.ts'
import { keyLimitsSchema, keyLimitsObject } from './key-limits.ts'

const KEY = textField('expected the id of a key').regex(/^[0-9a-f]{16}$/, {
  error: 'expected the id of a key',
})

/** A key of a channel as responses show it, masked. */
const channelKey = z.object({
  id: z.string().describe('The same for the same key'),
  key: z.string().describe('Masked'),
  state: z.enum(['works', 'set_aside', 'retired']),
  cause: z.string().nullable().describe('Why it is set aside'),
  since: z.int().nullable().describe('Unix seconds'),
  calls_hour: z.int(),
  limits: keyLimitsSchema.describe('What the provider stated'),
  left_minutes: z
    .array(z.int().nullable())
    .length(HISTORY_MINUTES)
    .describe(
      'Percent of the limit that were left in each minute of the last hour; null where nothing was stated',
    ),
})

export const channelKeysSchema = z.array(channelKey)

/** Input with keys to be added, one per line. */
export const addedKeysSchema = z.object(
  { key: textField('expected at least one key, one a line', TEXT_BYTE_LIMITS.list) },
  { error: 'expected an object with key' },
)

/** Input with the state that a key should get. */
export const keyStateBody = z.object(
  { id: KEY, state: z.enum(['works', 'retired'], { error: 'expected works or retired' }) },
  { error: 'expected an object with id and state' },
)

/** Path parameters that identify a key of a channel. */
export const channelKeyPath = CHANNEL_ID_SCHEMAS.path.extend({ key_id: KEY })

type KeyServices = Pick<AdministrationServices, 'store' | 'liveConfig' | 'channels' | 'nowMs'>

/**
 * The keys of a channel as this node sees them: first those in use, then retired ones.
 * `docs/administration.md: Keys of a channel`.
 */
export async function listChannelKeys(
  services: KeyServices,
  id: number,
): Promise<z.output<typeof channelKeysSchema>> {
  const found = await findChannel(services, id)
  const { keys } = 'stored' in found ? found.stored : found.declared
  const retired = 'stored' in found ? (found.stored.retired ?? []) : []
  const provider =
    'stored' in found ? channelType(found.stored.family['type'] as number)?.provider : found.declared.provider
  const { keyRings, minutes, providerLimits } = services.channels
  const limitsOf = keyLimitsObject(services, found.name)
  const readMs = performance.now()
  const shown = (key: string) => ({
    id: idOf(key),
    key: masked(provider, key),
    calls_hour: minutes.ofKey(found.name, key),
    limits: limitsOf(key),
    left_minutes: [...providerLimits.historyOf(found.name, key)],
  })
  return [
    ...keys.map((key) => {
      const rest = keyRings.rests.shownRest(found.name, key, readMs)
      const since = rest ? Math.floor(rest.sinceMs / 1000) : null
      const state = rest ? ('set_aside' as const) : ('works' as const)
      return { ...shown(key), state, cause: rest?.cause ?? null, since }
    }),
    ...retired.map(({ key, since }) => ({ ...shown(key), state: 'retired' as const, cause: null, since })),
  ]
}

/** Adds keys to a stored channel. A retired key that is added again is used again. */
export async function addChannelKeys(
  services: KeyServices,
  { id, key: text }: z.output<typeof addedKeysSchema> & { readonly id: number },
): Promise<z.output<typeof channelKeysSchema>> {
  await changeKeys(services, id, (before) => {
    const fields = fieldsOfStoredChannel(before)
    const added = parseKeysOfType(requireType(fields.type), text)
    if (added.length === 0)
      throw new GatewayError('invalid_request', 'key: expected at least one key, one a line')
    const { keys, declared } = channelDefinition(fields, [...before.keys, ...added])
    if (declared['region'] !== before.declared['region'])
      throw new GatewayError('invalid_request', 'key: expected the region of the channel in every key')
    return {
      keys: [...new Set(keys)],
      retired: (before.retired ?? []).filter(({ key }) => !keys.includes(key)),
    }
  })
  return listChannelKeys(services, id)
}

/** Retires a key, so that it gets no more calls, or makes a retired key be used again. */
export async function setKeyState(
  services: KeyServices,
  {
    id,
    key: keyId,
    state,
  }: { readonly id: number; readonly key: string; readonly state: 'works' | 'retired' },
): Promise<z.output<typeof channelKeysSchema>> {
  await changeKeys(services, id, (before) => {
    const { keys, retired = [] } = before
    const key = keyOf(before, keyId)
    const isUsed = keys.includes(key)
    if (state === 'works') {
      services.channels.keyRings.rests.endOfKey(before.name, key)
      return isUsed ? undefined : { keys: [...keys, key], retired: retired.filter((one) => one.key !== key) }
    }
    if (!isUsed) return undefined
    if (keys.length === 1)
      throw new GatewayError(
        'invalid_request',
        'id: the last key in use cannot be retired: disable the channel',
      )
    const since = Math.floor(services.nowMs() / 1000)
    return { keys: keys.filter((one) => one !== key), retired: [...retired, { key, since }] }
  })
  return listChannelKeys(services, id)
}

/** Removes a key of a stored channel. Throws `invalid_request` if it is the last one. */
export async function removeChannelKey(
  services: KeyServices,
  { id, key_id }: z.output<typeof channelKeyPath>,
): Promise<void> {
  await changeKeys(services, id, (before) => {
    const key = keyOf(before, key_id)
    const { keys, retired = [] } = before
    if (keys.length === 1 && keys[0] === key)
      throw new GatewayError('invalid_request', 'key_id: the last key in use cannot be removed')
    return { keys: keys.filter((one) => one !== key), retired: retired.filter((one) => one.key !== key) }
  })
}

type Keys = Required<Pick<StoredChannel, 'keys' | 'retired'>>

/** Replaces the keys of a stored channel with what `next` returns; if that is undefined, nothing changes. */
async function changeKeys(
  services: KeyServices,
  id: number,
  next: (before: StoredChannel) => Keys | undefined,
): Promise<void> {
  await replaceChannel(services, { id }, (before) => {
    const keys = next(before)
    const { name, declared, status, family } = before
    return keys && { name, declared, status, family, ...keys }
  })
}

function keyOf({ keys, retired = [] }: StoredChannel, id: string): string {
  const found = [...keys, ...retired.map(({ key }) => key)].find((key) => idOf(key) === id)
  if (found !== undefined) return found
  throw new GatewayError('not_found', `this channel has no key with the id ${id}`)
}

function idOf(key: string): string {
  return createHash('sha256').update(key).digest('hex').slice(0, 16)
}

/** The part of a key that is not secret: its id, or its beginning and end. */
function masked(provider: Channel['provider'] | undefined, key: string): string {
  return publicPartOfKey(provider, key) || maskedKey(key)
}
