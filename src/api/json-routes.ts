import { ACCOUNT_ENDPOINTS } from './account.ts'
import { ADMINISTRATION_ENDPOINTS } from './administration.ts'
import { ALERT_ENDPOINTS } from './alerts.ts'
import { TELEMETRY_ENDPOINTS } from './telemetry.ts'
import { BATCH_MANAGEMENT_ENDPOINTS } from './batches.ts'
import { BILLING_ENDPOINTS } from './billing.ts'
import { CHANNEL_ENDPOINTS } from './channels.ts'
import type { JsonEndpoint } from './endpoint.ts'
import { GUARD_ENDPOINTS } from './guards.ts'
import { MCP_MANAGEMENT_ENDPOINTS } from './mcp.ts'
import { IMPORT_ENDPOINTS } from './imports.ts'
import { MODEL_ENDPOINTS } from './models.ts'
import { openApi } from './openapi.ts'
import { RAW_ROUTES } from './raw-routes.ts'
import { ROUTING_ENDPOINTS } from './routing.ts'
import { SIGN_IN_ENDPOINTS } from './sign-in.ts'
import { TOKEN_ENDPOINTS } from './tokens.ts'
import { USAGE_ENDPOINTS } from './usage.ts'
import { USER_ENDPOINTS } from './users.ts'

/** All endpoints that accept and return JSON: accounts, administration, balances, model lists. */
export const JSON_ROUTES: readonly JsonEndpoint[] = [
  ...BILLING_ENDPOINTS,
  ...MODEL_ENDPOINTS,
  ...SIGN_IN_ENDPOINTS,
  ...ACCOUNT_ENDPOINTS,
  ...TOKEN_ENDPOINTS,
  ...USER_ENDPOINTS,
  ...CHANNEL_ENDPOINTS,
  ...ROUTING_ENDPOINTS,
  ...ADMINISTRATION_ENDPOINTS,
  ...ALERT_ENDPOINTS,
  ...GUARD_ENDPOINTS,
  ...MCP_MANAGEMENT_ENDPOINTS,
  ...TELEMETRY_ENDPOINTS,
  ...IMPORT_ENDPOINTS,
  ...USAGE_ENDPOINTS,
  ...BATCH_MANAGEMENT_ENDPOINTS,
  openApi(() => [...RAW_ROUTES, ...JSON_ROUTES]),
]
