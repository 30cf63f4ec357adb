import type { ServiceMatch } from '../../../domain/guard.ts'
import { bedrock } from './bedrock.ts'
import { lakera } from './lakera.ts'
import { moderation } from './moderation.ts'
import { presidio } from './presidio.ts'
import type { Service, ServiceMaker } from './service.ts'
import { webhook } from './webhook.ts'

/** The services of guards, by the member of `match` that names them; `docs/guards.md: Services`. */
const SERVICES: { readonly [Kind in ServiceMatch['kind']]: ServiceMaker<Kind> } = {
  moderation,
  webhook,
  presidio,
  bedrock,
  lakera,
}

/** The service that a match names. */
export function serviceOf<Kind extends ServiceMatch['kind']>(
  match: Extract<ServiceMatch, { readonly kind: Kind }>,
): Service {
  const make: ServiceMaker<Kind> = SERVICES[match.kind]
  return make(match)
}
