import type { ProtocolName } from '@sluice/wire/protocols'
import type { ProviderName } from './records/channel.ts'

/** What the gateway knows about the upstreams of a protocol. */
interface UpstreamProtocol {
  /** Endpoint type of the models of its channels in model lists; undefined if the lists have none. */
  readonly endpointType: 'vendor' | 'compat' | undefined
  /** Whether its channels embed texts. */
  readonly embeds: boolean
  /** Vendor whose tool prices apply if the upstream's address does not imply another vendor. */
  readonly vendor: 'openai' | 'anthropic' | 'google'
  /** Whether its requests can offer tools that the provider runs. */
  readonly hasTools: boolean
  /** Providers whose upstreams use it. */
  readonly providers: readonly ProviderName[]
  /**
   * Number of the channel type for upstreams of unknown vendors with this protocol; undefined if there is
   * none.
   */
  readonly channelType: number | undefined
}

/** The protocols of upstreams, with the properties that several modules need. */
export const UPSTREAM_PROTOCOLS: Readonly<Record<ProtocolName, UpstreamProtocol>> = {
  chat: {
    endpointType: 'compat',
    embeds: true,
    vendor: 'openai',
    hasTools: true,
    providers: ['azure', 'vertex'],
    channelType: 8,
  },
  messages: {
    endpointType: 'vendor',
    embeds: false,
    vendor: 'anthropic',
    hasTools: true,
    providers: ['azure', 'bedrock', 'vertex'],
    channelType: 14,
  },
  responses: {
    endpointType: 'compat',
    embeds: false,
    vendor: 'openai',
    hasTools: true,
    providers: ['azure'],
    channelType: undefined,
  },
  gemini: {
    endpointType: 'compat',
    embeds: true,
    vendor: 'google',
    hasTools: true,
    providers: ['vertex'],
    channelType: 24,
  },
  converse: {
    endpointType: 'compat',
    embeds: true,
    vendor: 'anthropic',
    hasTools: false,
    providers: ['bedrock'],
    channelType: undefined,
  },
  rerank: {
    endpointType: undefined,
    embeds: false,
    vendor: 'openai',
    hasTools: false,
    providers: [],
    channelType: 34,
  },
}
