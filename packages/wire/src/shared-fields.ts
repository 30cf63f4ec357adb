import type { UpstreamSettings } from './upstream-settings.ts'
import type { DroppedFields } from './codec.ts'
import { type Conversation, SHARED_FIELDS, type SharedField, type SharedFields } from './conversation.ts'
import { isAnyValue, type IsMeaningful, isNotDefault } from './dropped-fields.ts'
import { asRecord } from './json/record.ts'
import type { ScannedObject } from './json/scanned-object.ts'

const notEmpty = isNotDefault('')

/**
 * Tests for each shared field whether a value differs from the default of the chat protocol, so that it
 * matters.
 */
const IS_MEANINGFUL: Readonly<Record<SharedField, IsMeaningful>> = {
  metadata: (value) => Object.keys(asRecord(value) ?? {}).length > 0,
  prompt_cache_key: notEmpty,
  prompt_cache_options: (value) => Object.keys(asRecord(value) ?? {}).length > 0,
  prompt_cache_retention: isAnyValue,
  safety_identifier: notEmpty,
  service_tier: isNotDefault('auto', 'default'),
  store: (value) => value !== false,
  user: notEmpty,
  verbosity: isNotDefault('medium'),
}

/**
 * Collects the fields that chat and responses requests share, without default values. The result can be
 * spread into a conversation.
 */
export function sharedFields(
  scan: ScannedObject,
  dropped: DroppedFields,
  fields: readonly SharedField[] = SHARED_FIELDS,
): { shared?: SharedFields } {
  const found = fields.flatMap((name): (readonly [SharedField, string])[] => {
    const member = scan.span(name)
    if (!member || scan.kindOf(member.node) === 'null' || !IS_MEANINGFUL[name](scan.value(name))) return []
    return [[name, scan.textOf(member.node)]]
  })
  return found.length > 0 ? { shared: withCacheOptions(new Map(found), dropped) } : {}
}

/** Members of `prompt_cache_options` that chat and responses share. */
const CACHE_OPTIONS: ReadonlySet<string> = new Set(['mode', 'ttl'])

/**
 * Keeps those members of `prompt_cache_options` that both protocols have. Its `ttl` replaces
 * `prompt_cache_retention`, an older field with the same meaning.
 */
function withCacheOptions(shared: Map<SharedField, string>, dropped: DroppedFields): SharedFields {
  const options = shared.get('prompt_cache_options')
  const given = options === undefined ? undefined : asRecord(JSON.parse(options))
  if (!given) return shared
  const others = Object.keys(given).filter((name) => !CACHE_OPTIONS.has(name))
  if (others.length > 0) {
    dropped.add('prompt_cache_options')
    const kept = Object.fromEntries(Object.entries(given).filter(([name]) => CACHE_OPTIONS.has(name)))
    if (Object.keys(kept).length > 0) shared.set('prompt_cache_options', JSON.stringify(kept))
    else shared.delete('prompt_cache_options')
  }
  if ('ttl' in given && shared.delete('prompt_cache_retention')) dropped.add('prompt_cache_retention')
  return shared
}

/** Converts the parsed value of a field to a shared field; an empty list if it is the default value. */
export function sharedField(name: SharedField, value: unknown): readonly (readonly [SharedField, string])[] {
  return value === undefined || value === null || !IS_MEANINGFUL[name](value)
    ? []
    : [[name, JSON.stringify(value)]]
}

/**
 * Renders the shared fields as members of a chat or responses request. The user's id and the tier of a
 * messages request get the names of these protocols.
 */
export function sharedMembers({
  shared,
  endUser,
  isStandardTier,
}: Conversation): (readonly [SharedField, string])[] {
  const isOfMessages = endUser?.field === 'metadata'
  return [
    ...(shared ?? []),
    ...(isOfMessages ? [['safety_identifier', JSON.stringify(endUser.id)] as const] : []),
    ...(isStandardTier ? [['service_tier', '"default"'] as const] : []),
  ]
}

/**
 * Reports the shared fields as dropped, because the target protocol does not have them. `keepsEndUser` says
 * that this protocol has other fields for the client's user and the standard tier, `keepsTier` that it has a
 * field for any tier.
 */
export function dropSharedFields(
  { shared, endUser, isStandardTier }: Conversation,
  dropped: DroppedFields,
  { keepsEndUser = false, keepsTier = false } = {},
): void {
  for (const name of shared?.keys() ?? []) {
    const isKept = (keepsEndUser && name === endUser?.field) || (keepsTier && name === 'service_tier')
    if (!isKept) dropped.add(name)
  }
  if (keepsEndUser) return
  if (endUser?.field === 'metadata') dropped.add('metadata')
  if (isStandardTier) dropped.add('service_tier')
}

/**
 * Returns the conversation with only the shared fields that its upstream accepts; `docs/api.md: Chat
 * completions`, shared fields.
 */
export function withAcceptedFields(
  conversation: Conversation,
  takes: (field: SharedField) => boolean,
  dropped: DroppedFields,
): Conversation {
  const { shared, endUser, isStandardTier, ...others } = conversation
  const isUserTaken = endUser?.field !== 'metadata' || takes('safety_identifier')
  const isTierTaken = !isStandardTier || takes('service_tier')
  const left = [...(shared?.keys() ?? [])].filter((name) => !takes(name))
  if (isUserTaken && isTierTaken && left.length === 0) return conversation
  for (const name of left) dropped.add(name)
  if (!isUserTaken) dropped.add('metadata')
  if (!isTierTaken) dropped.add('service_tier')
  return {
    ...others,
    ...(shared && { shared: new Map([...shared].filter(([name]) => takes(name))) }),
    ...(endUser && isUserTaken && { endUser }),
    ...(isStandardTier && isTierTaken && { isStandardTier }),
  }
}

/** Shared request fields that are sent only if the channel's `allow` names them. */
const GATED = ['service_tier', 'safety_identifier'] as const

/**
 * Returns the conversation without the fields that its channel does not allow, also in pass-through mode,
 * which is for requests that are not converted; `docs/api.md: Chat completions`, filters.
 */
export function withoutRestrictedFields(
  conversation: Conversation,
  { allow, disable_store }: Pick<UpstreamSettings, 'allow' | 'disable_store'>,
  dropped: DroppedFields,
): Conversation {
  const { endUser, isStandardTier, ...others } = conversation
  const { shared } = others
  const isUserRemoved = endUser !== undefined && endUser.field !== 'user' && !allow.has('safety_identifier')
  const isTierRemoved = isStandardTier && !allow.has('service_tier')
  if (isUserRemoved) dropped.add(endUser.field)
  if (isTierRemoved) dropped.add('service_tier')
  const rest: Conversation = {
    ...others,
    ...(endUser && !isUserRemoved && { endUser }),
    ...(isStandardTier && !isTierRemoved && { isStandardTier }),
  }
  const removed = [
    ...GATED.filter((name) => !allow.has(name)),
    ...(disable_store ? (['store'] as const) : []),
  ].filter((name) => shared?.has(name))
  if (!shared || removed.length === 0) return rest
  const kept = new Map(shared)
  for (const name of removed) {
    kept.delete(name)
    dropped.add(name)
  }
  return { ...rest, shared: kept }
}
