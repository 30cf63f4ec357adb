import type { Endpoint } from '../../src/api/endpoint.ts'
import { JSON_ROUTES } from '../../src/api/json-routes.ts'
import { RAW_ROUTES } from '../../src/api/raw-routes.ts'

/** Every endpoint of the gateway. */
export const ROUTES: readonly Endpoint[] = [...RAW_ROUTES, ...JSON_ROUTES]
