import { PROTOCOL_NAMES } from '@sluice/wire/protocols'
import type { Channel } from '../domain/records/channel.ts'
import { UPSTREAM_PROTOCOLS } from '../domain/protocols.ts'
import { BEDROCK_KEY_FORMS, parseBedrockKey, parseServiceAccount } from '../domain/provider-keys.ts'
import { locationError, regionError } from './regions.ts'

/** The part of a channel that concerns its provider; the address may be missing. */
type GivenProvider = Pick<
  Channel,
  'provider' | 'api_version' | 'region' | 'project' | 'location' | 'protocol' | 'keys'
> & { readonly base_url?: string | undefined }

/** An error of a channel, with the path of the faulty key. */
export interface ProviderIssue {
  readonly path: readonly (string | number)[]
  readonly message: string
}

/** Providers that support each setting. */
const OWNERS = {
  api_version: ['azure'],
  region: ['bedrock'],
  project: ['vertex'],
  location: ['vertex'],
} as const

/** Errors in a channel's provider and in the settings that depend on it. */
export function providerIssues(given: GivenProvider): ProviderIssue[] {
  const { provider, protocol, keys } = given
  const issues: ProviderIssue[] = []
  const add = (path: readonly (string | number)[], message: string): number => issues.push({ path, message })
  for (const [field, owners] of Object.entries(OWNERS)) {
    if (given[field as keyof typeof OWNERS] !== null && !owners.some((owner) => owner === provider))
      add([field], `only channels with provider ${owners.join(' or ')} have this key`)
  }
  if (provider === 'bedrock' && given.region === null) add(['region'], 'expected the name of a region')
  if (given.base_url === undefined) {
    const unknown = provider === 'bedrock' && given.region !== null && regionError(given.region)
    if (unknown) add(['region'], unknown)
    const unplaced = provider === 'vertex' && given.location !== null && locationError(given.location)
    if (unplaced) add(['location'], unplaced)
  }
  const spoken =
    provider === 'generic'
      ? PROTOCOL_NAMES
      : PROTOCOL_NAMES.filter((name) => UPSTREAM_PROTOCOLS[name].providers.includes(provider))
  for (const one of protocol.filter((one) => !spoken.includes(one)))
    add(['protocol'], `expected ${spoken.join(', ')} with provider ${provider}, found ${one}`)
  for (const [index, key] of keys.entries()) {
    const expected = KEY_FORMS[provider]?.(key)
    if (expected !== undefined) add(['keys', index], `expected ${expected}`)
  }
  return issues
}

/** Checks of a key's form, by provider; each returns the expected form if the key does not have it. */
const KEY_FORMS: Partial<Record<GivenProvider['provider'], (key: string) => string | undefined>> = {
  bedrock: (key) => (parseBedrockKey(key) ? undefined : BEDROCK_KEY_FORMS),
  vertex(key) {
    const parsed = parseServiceAccount(key)
    return 'expected' in parsed ? `${parsed.expected}, or file: and its path` : undefined
  },
}

/** The base URL of a channel without issues: its own, otherwise that of its provider's region or location. */
export function addressOf({ provider, base_url, region, location }: GivenProvider): string {
  if (base_url !== undefined) return base_url
  if (provider === 'bedrock') return bedrockUrl(region ?? '')
  return provider === 'vertex' ? vertexUrl(location ?? 'global') : ''
}

function bedrockUrl(region: string): string {
  return `https://bedrock-runtime.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`
}

function vertexUrl(location: string): string {
  if (location === 'global') return 'https://aiplatform.googleapis.com'
  if (location === 'us' || location === 'eu') return `https://aiplatform.${location}.rep.googleapis.com`
  return `https://${location}-aiplatform.googleapis.com`
}
