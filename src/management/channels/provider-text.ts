import { parseBedrockKey } from '../../domain/bedrock-key.ts'
import type { Json } from '../../domain/json.ts'
import { GatewayError } from '../../errors.ts'
import { parseServiceAccount } from '../../domain/service-account.ts'
import type { Channel } from '../../domain/records/channel.ts'
import type { ChannelType } from './channel-types.ts'

/** Additional members with which a provider's channel is declared. */
export interface ProviderText {
  readonly declared: Readonly<Record<string, Json>>
  /** Keys in the form of gateway.yaml. */
  readonly keys: readonly string[]
  /** The field `other` of tools: a version, a region or a location. */
  readonly other?: string
}

/**
 * Reads the provider-specific part of a channel in the format of tools: `other` contains Azure's API version
 * or Vertex's location, and keys of Bedrock end with their region. Throws `invalid_request`.
 */
export function providerText(
  { provider }: ChannelType,
  given: { readonly keys: readonly string[]; readonly other: string },
): ProviderText {
  const { keys, other } = given
  if (provider === undefined) return { declared: {}, keys }
  switch (provider) {
    case 'azure':
      return { declared: { provider, ...(other !== '' && { api_version: other }) }, keys }
    case 'bedrock':
      return bedrockText(keys, other)
    case 'vertex': {
      const location = locationIn(other)
      return { declared: { provider, ...(location !== '' && { location }) }, keys }
    }
  }
}

/** Splits the keys of a Vertex channel: one service account, or a JSON list of them. */
export function serviceAccountsIn(text: string): string[] {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new GatewayError(
      'invalid_request',
      "key: expected the JSON of a service account's key, or a list of them",
    )
  }
  return [value].flat().map((account) => JSON.stringify(account))
}

/**
 * The part of a key that may be shown: a service account's e-mail address, or the id of an AWS key; empty for
 * others.
 */
export function keyId(provider: Channel['provider'] | undefined, key: string): string {
  if (provider === 'vertex') {
    const account = parseServiceAccount(key)
    return 'email' in account ? account.email : ''
  }
  const parsed = provider === 'bedrock' ? parseBedrockKey(key) : undefined
  return parsed && 'aws' in parsed ? parsed.aws.accessKeyId : ''
}

const REGION = /^[a-z]{2,}(?:-[a-z]+)+-\d+$/
const BEDROCK_LINES = 'key: expected ID|SECRET|REGION or API_KEY|REGION, with a region such as eu-central-1'

// Reads `ID|SECRET|REGION` or `API_KEY|REGION`, or keys in the form of gateway.yaml without a region.
function bedrockText(given: readonly string[], other: string): ProviderText {
  const regions = new Set<string>()
  const keys = given.map((line) => {
    const parts = line.split('|')
    if (parts.length === 1) return line
    const region = (parts.pop() as string).trim()
    // The message does not repeat the text, because it may be the secret.
    if (!REGION.test(region)) throw new GatewayError('invalid_request', BEDROCK_LINES)
    regions.add(region)
    return parts.join(':')
  })
  if (regions.size > 1)
    throw new GatewayError('invalid_request', 'key: expected the same region in every key')
  const region = [...regions][0] ?? other
  return {
    declared: { provider: 'bedrock', ...(region !== '' && { region }) },
    keys,
    ...(region !== '' && { other: region }),
  }
}

// A location, or a JSON object with one for each model and a default.
function locationIn(other: string): string {
  if (!other.startsWith('{')) return other
  let value: unknown
  try {
    value = JSON.parse(other)
  } catch {
    value = undefined
  }
  const entries = typeof value === 'object' && value !== null ? Object.entries(value) : []
  const [first, ...more] = entries
  if (first?.[0] === 'default' && typeof first[1] === 'string' && more.length === 0) return first[1]
  throw new GatewayError('invalid_request', 'other: expected one location, such as europe-west4 or global')
}
