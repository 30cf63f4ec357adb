import type { Channel, ProviderName } from '../domain/records/channel.ts'
import { azure } from './azure/azure.ts'
import { bedrock } from './bedrock/bedrock.ts'
import type { Provider } from './provider.ts'
import type { PostForm } from './vertex/access-tokens.ts'
import { vertex } from './vertex/vertex.ts'

/** Providers with a way of their own, by name. */
export class Providers {
  readonly #byName: Readonly<Record<ProviderName, Provider>>

  /** `post` reaches token endpoints. */
  constructor(post: PostForm) {
    this.#byName = { azure, bedrock, vertex: vertex(post) }
  }

  /** Headers of a response that the providers read. */
  get readHeaders(): readonly string[] {
    return Object.values(this.#byName).flatMap(({ readHeaders = [] }) => readHeaders)
  }

  /** The provider of a channel; undefined where its upstream takes the dialects as they are. */
  of({ provider }: Channel): Provider | undefined {
    return provider === 'generic' ? undefined : this.#byName[provider]
  }
}
