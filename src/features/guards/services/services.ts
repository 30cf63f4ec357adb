import type { ServiceMatch } from '../../../domain/guard.ts'
import { bedrock } from './bedrock.ts'
import { lakera } from './lakera.ts'
import { moderation } from './moderation.ts'
import { presidio } from './presidio.ts'
import type { Service, ServiceMaker } from './service.ts'
import { webhook } from './webhook.ts'

/** Kinds of services, by the member of a guard's `match` that selects them; `docs/guards.md: Services`. */
const SERVICES: { readonly [Kind in ServiceMatch['kind']]: ServiceMaker<Kind> } = {
  moderation,
  webhook,
  presidio,
  bedrock,
  lakera,
}

/** Creates the service that a guard's `match` declares. */
export function serviceOf<Kind extends ServiceMatch['kind']>(
  match: Extract<ServiceMatch, { readonly kind: Kind }>,
): Service {
  const make: ServiceMaker<Kind> = SERVICES[match.kind]
  return make(match)
}
