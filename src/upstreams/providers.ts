import type { Channel, ProviderName } from '../domain/records/channel.ts'
import { azure } from './azure/azure.ts'
import { bedrock } from './bedrock/bedrock.ts'
import type { Provider } from './provider.ts'
import type { PostForm } from './vertex/access-tokens.ts'
import { vertex } from './vertex/vertex.ts'

/** The implementations of all providers except `generic`, by name. */
export class Providers {
  readonly #byName: Readonly<Record<ProviderName, Provider>>

  /** `post` sends forms to servers that issue access tokens. */
  constructor(post: PostForm) {
    this.#byName = { azure, bedrock, vertex: vertex(post) }
  }

  /** Response headers that the providers' implementations read, in lower case. */
  get readHeaders(): readonly string[] {
    return Object.values(this.#byName).flatMap(({ readHeaders = [] }) => readHeaders)
  }

  /** The implementation of a channel's provider; undefined if its upstream speaks the protocols unchanged. */
  of({ provider }: Channel): Provider | undefined {
    return provider === 'generic' ? undefined : this.#byName[provider]
  }
}
