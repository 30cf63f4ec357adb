/** The part of `oidc-provider` that the tests use; the package has no types. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http'

  interface Grant {
    addOIDCScope(scope: string): void
    save(): Promise<string>
  }

  interface Context {
    readonly oidc: {
      readonly session: {
        readonly accountId: string
        grantIdFor(clientId: string): string | undefined
      }
      readonly client: { readonly clientId: string }
    }
  }

  export class Provider {
    constructor(issuer: string, configuration: object)
    readonly Grant: {
      new (fields: { accountId: string; clientId: string }): Grant
      find(id: string): Promise<Grant | undefined>
    }
    callback(): (request: IncomingMessage, response: ServerResponse) => void
    interactionFinished(
      request: IncomingMessage,
      response: ServerResponse,
      result: { login: { accountId: string } },
    ): Promise<void>
  }
}
