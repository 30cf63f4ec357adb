import type { ProtocolName } from '@sluice/wire/protocols'
import type { ProviderName } from './records/channel.ts'

/** An endpoint for calls that are not conversations. */
type OtherEndpoint = 'embeddings' | 'moderations' | 'images' | 'speech' | 'transcriptions' | 'rerank'

/** What the gateway knows about the upstreams of a protocol. */
interface UpstreamProtocol {
  /**
   * Kind of API that model lists state for models of channels with this protocol; undefined if they state
   * none.
   */
  readonly endpointType: 'vendor' | 'compat' | undefined
  /** Endpoints other than conversations that channels with this protocol serve. */
  readonly serves: readonly OtherEndpoint[]
  /** Vendor whose tool prices apply if the upstream's address does not imply another vendor. */
  readonly vendor: 'openai' | 'anthropic' | 'google'
  /** Whether requests in this protocol can offer tools that the provider runs. */
  readonly hasTools: boolean
  /**
   * Whether signatures in replies are valid only for one provider account; otherwise they are valid for the
   * whole channel.
   */
  readonly signsByAccount: boolean
  /** The batch API that the vendor of the protocol has; undefined if it has none that the gateway uses. */
  readonly batchApi: BatchApi | undefined
  /** Whether requests can be sent over WebSockets. */
  readonly hasWebSockets: boolean
  /** Cloud providers whose upstreams speak this protocol. */
  readonly providers: readonly ProviderName[]
  /**
   * Number in One API's list of channel types for an upstream of an unknown vendor with this protocol;
   * undefined if there is none.
   */
  readonly channelType: number | undefined
}

/** The protocols of upstreams, with the properties that several modules need. */
export const UPSTREAM_PROTOCOLS: Readonly<Record<ProtocolName, UpstreamProtocol>> = {
  chat: {
    endpointType: 'compat',
    serves: ['embeddings', 'moderations', 'images', 'speech', 'transcriptions'],
    vendor: 'openai',
    hasTools: true,
    signsByAccount: false,
    batchApi: 'openai',
    hasWebSockets: false,
    providers: ['azure', 'vertex'],
    channelType: 8,
  },
  messages: {
    endpointType: 'vendor',
    serves: [],
    vendor: 'anthropic',
    hasTools: true,
    signsByAccount: false,
    batchApi: 'anthropic',
    hasWebSockets: false,
    providers: ['azure', 'bedrock', 'vertex'],
    channelType: 14,
  },
  responses: {
    endpointType: 'compat',
    serves: [],
    vendor: 'openai',
    hasTools: true,
    signsByAccount: true,
    batchApi: 'openai',
    hasWebSockets: true,
    providers: ['azure'],
    channelType: undefined,
  },
  gemini: {
    endpointType: 'compat',
    serves: ['embeddings'],
    vendor: 'google',
    hasTools: true,
    signsByAccount: false,
    batchApi: 'gemini',
    hasWebSockets: false,
    providers: ['vertex'],
    channelType: 24,
  },
  converse: {
    endpointType: 'compat',
    serves: ['embeddings'],
    vendor: 'anthropic',
    hasTools: false,
    signsByAccount: false,
    batchApi: undefined,
    hasWebSockets: false,
    providers: ['bedrock'],
    channelType: undefined,
  },
  rerank: {
    endpointType: undefined,
    serves: ['rerank'],
    vendor: 'openai',
    hasTools: false,
    signsByAccount: false,
    batchApi: undefined,
    hasWebSockets: false,
    providers: [],
    channelType: 34,
  },
}

type BatchApi = 'openai' | 'anthropic' | 'gemini'

/** The batch APIs that a provider has, of those of its protocols. */
const BATCH_APIS: Readonly<Record<'generic' | ProviderName, readonly BatchApi[]>> = {
  generic: ['openai', 'anthropic', 'gemini'],
  azure: ['openai'],
  bedrock: [],
  vertex: [],
}

/** The batch API that a provider has for a protocol; undefined if it has none that the gateway uses. */
export function batchApiOf(provider: 'generic' | ProviderName, protocol: ProtocolName): BatchApi | undefined {
  return BATCH_APIS[provider].find((api) => api === UPSTREAM_PROTOCOLS[protocol].batchApi)
}
