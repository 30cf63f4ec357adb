import type { Channel, ProtocolName, ProviderSettings } from '../domain/channel.ts'
import { PROTOCOL_NAMES, protocolsThat } from '../domain/protocols.ts'
import { BEDROCK_KEY_FORMS, parseBedrockKey } from '../domain/bedrock-key.ts'
import { parseServiceAccount } from '../domain/service-account.ts'
import { oneOf, text } from './fields.ts'
import { locationError, regionError } from './regions.ts'

const region = text('the name of a region, such as eu-central-1', (given) =>
  /^[a-z]{2,}(?:-[a-z]+)+-\d+$/.test(given) ? given : undefined,
)
const apiVersion = text('a version such as 2024-10-21', (given) =>
  /^\d{4}-\d{2}-\d{2}(?:-preview)?$/.test(given) ? given : undefined,
)
const location = text('a location such as europe-west4, us or global', (given) =>
  /^[a-z]+(?:-[a-z]+\d+)?$/.test(given) ? given : undefined,
)
const project = text('the id of a project', (given) =>
  /^[a-z0-9][a-z0-9.:-]{0,99}$/.test(given) ? given : undefined,
)

/** Keys of a channel that belong to its provider. `docs/configuration.md: Providers`. */
export const PROVIDER_FIELDS = {
  provider: oneOf(['generic', 'azure', 'bedrock', 'vertex']).default('generic'),
  api_version: apiVersion.optional(),
  region: region.optional(),
  project: project.optional(),
  location: location.optional(),
}

/** A channel as far as its provider is concerned. */
export interface GivenProvider {
  readonly provider: 'generic' | ProviderSettings['name']
  readonly api_version?: string | undefined
  readonly region?: string | undefined
  readonly project?: string | undefined
  readonly location?: string | undefined
  readonly base_url?: string | undefined
  readonly protocol: readonly ProtocolName[]
  readonly keys: readonly string[]
}

/** An error of a channel, at one of its keys. */
export interface ProviderIssue {
  readonly path: readonly (string | number)[]
  readonly message: string
}

/** Providers that a setting belongs to. */
const OWNERS = {
  api_version: ['azure'],
  region: ['bedrock'],
  project: ['vertex'],
  location: ['vertex'],
} as const

/** Errors of a channel's provider and of the settings that go with it. */
export function providerIssues(given: GivenProvider): ProviderIssue[] {
  const { provider, protocol, keys } = given
  const issues: ProviderIssue[] = []
  const add = (path: readonly (string | number)[], message: string): number => issues.push({ path, message })
  for (const [field, owners] of Object.entries(OWNERS)) {
    if (given[field as keyof typeof OWNERS] !== undefined && !owners.some((owner) => owner === provider))
      add([field], `only channels with provider ${owners.join(' or ')} have this key`)
  }
  if (provider === 'bedrock' && given.region === undefined) add(['region'], 'expected the name of a region')
  if (given.base_url === undefined) {
    const unknown = provider === 'bedrock' && given.region !== undefined && regionError(given.region)
    if (unknown) add(['region'], unknown)
    const unplaced = provider === 'vertex' && given.location !== undefined && locationError(given.location)
    if (unplaced) add(['location'], unplaced)
  }
  const spoken =
    provider === 'generic' ? PROTOCOL_NAMES : protocolsThat((row) => row.providers.includes(provider))
  for (const one of protocol.filter((one) => !spoken.includes(one)))
    add(['protocol'], `expected ${spoken.join(', ')} with provider ${provider}, found ${one}`)
  for (const [index, key] of keys.entries()) {
    const expected = KEY_FORMS[provider]?.(key)
    if (expected !== undefined) add(['keys', index], `expected ${expected}`)
  }
  return issues
}

/** The form that a key lacks, by provider. */
const KEY_FORMS: Partial<Record<GivenProvider['provider'], (key: string) => string | undefined>> = {
  bedrock: (key) => (parseBedrockKey(key) ? undefined : BEDROCK_KEY_FORMS),
  vertex(key) {
    const parsed = parseServiceAccount(key)
    return 'expected' in parsed ? `${parsed.expected}, or file: and its path` : undefined
  },
}

/** The provider of a channel without issues, and its base URL. */
export function providerOf(given: GivenProvider): Pick<Channel, 'provider' | 'baseUrl'> {
  const { provider, base_url: baseUrl, region = '', location = 'global' } = given
  switch (provider) {
    case 'generic':
      return { baseUrl: baseUrl ?? '' }
    case 'azure':
      return { provider: { name: 'azure', apiVersion: given.api_version }, baseUrl: baseUrl ?? '' }
    case 'bedrock':
      return { provider: { name: 'bedrock', region }, baseUrl: baseUrl ?? bedrockUrl(region) }
    case 'vertex':
      return {
        provider: { name: 'vertex', project: given.project, location },
        baseUrl: baseUrl ?? vertexUrl(location),
      }
  }
}

function bedrockUrl(region: string): string {
  return `https://bedrock-runtime.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`
}

function vertexUrl(location: string): string {
  if (location === 'global') return 'https://aiplatform.googleapis.com'
  if (location === 'us' || location === 'eu') return `https://aiplatform.${location}.rep.googleapis.com`
  return `https://${location}-aiplatform.googleapis.com`
}
