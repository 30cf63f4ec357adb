import type { CallFeature } from '../../call/feature.ts'
import type { NativeResponseServices } from './native-response.ts'
import { resolveReferences } from './resolve-references.ts'
import { signedHistory } from './signature-history.ts'
import type { SignatureStore } from './signature-store.ts'

/** Services for what clients refer to later. */
export interface StoredResponseServices extends NativeResponseServices {
  readonly signatures: SignatureStore
}

/** Keeps what later requests refer to, and finds it again: `docs/api.md: Stored responses`. */
export function storedResponses(services: StoredResponseServices): CallFeature {
  return {
    concerns: ({ options }, endpoint) => endpoint === 'responses' || options.keep_signatures > 0,
    refer: (request, reader) => resolveReferences(request, reader, services),
    decoded: (conversation, spoken, reader) =>
      signedHistory(conversation, spoken, reader, services.signatures),
  }
}
