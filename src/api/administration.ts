import { csvName } from '../management/csv-name.ts'
import { z } from 'zod'
import { auditCsv, auditFilter, auditPageSchema, auditQuery, listAudit } from '../management/audit-log.ts'
import { consoleShell, consoleShellSchema } from '../management/console-shell.ts'
import { findObjects, findQuery, findSchema } from '../management/find-objects.ts'
import { pageOfQuery, pageQuery } from '../management/page.ts'
import {
  declaredSettingsObject,
  declaredSchema,
  listOptions,
  optionSchema,
} from '../management/settings/list-options.ts'
import { optionBody, setOption } from '../management/settings/set-option.ts'
import { gatewayStatus, statusSchema } from '../management/gateway-status.ts'
import {
  defineAccountEndpoint,
  defineAdminEndpoint,
  defineRootUserEndpoint,
  defineUnauthenticatedEndpoint,
  type JsonEndpoint,
} from './endpoint.ts'

const auditFile = ({ from, to }: z.output<typeof auditQuery>, nowMs: number): string =>
  csvName('audit', { start: from, end: to && to - 1 }, nowMs)

/** `docs/administration.md`: status, options, the audit log, and data for the console's navigation. */
export const ADMINISTRATION_ENDPOINTS: readonly JsonEndpoint[] = [
  defineUnauthenticatedEndpoint('GET', '/api/status', {
    summary: 'Version, and how quota is displayed',
    responseBody: statusSchema,
    handle: ({ services }) => Promise.resolve(gatewayStatus(services.settings())),
  }),
  defineAccountEndpoint('GET', '/api/find', {
    summary: 'Keys, models, channels, users, groups and calls by a part of their name, or by their id',
    errorStatuses: [400],
    query: findQuery,
    responseBody: findSchema,
    handle: ({ user, query, services }) => findObjects(services, query.q, user),
  }),
  defineAccountEndpoint('GET', '/api/console', {
    summary: 'The account, the gateway and what is set up, as every page of the console needs them',
    responseBody: consoleShellSchema,
    handle: ({ user, services }) => consoleShell(services, user),
  }),
  defineRootUserEndpoint('GET', '/api/option/', {
    summary: 'The options, prices and groups in force',
    responseBody: z.array(optionSchema),
    handle: ({ services }) => listOptions(services),
  }),
  defineRootUserEndpoint('GET', '/api/option/declared', {
    summary: 'What the configuration file declares, with its lines; secrets are left out',
    responseBody: declaredSchema,
    handle: ({ services }) => Promise.resolve(declaredSettingsObject(services)),
  }),
  defineRootUserEndpoint('PUT', '/api/option/', {
    summary: 'Sets an option, prices or groups',
    errorStatuses: [409],
    body: optionBody,
    handle: ({ body, services }) => setOption(services, body),
  }),
  defineAdminEndpoint('GET', '/api/audit', {
    summary: 'Changes of users, keys, channels and settings, and sign-ins, the newest first',
    errorStatuses: [400],
    query: z.object({ ...auditQuery.shape, ...pageQuery.shape }),
    responseBody: auditPageSchema,
    handle: ({ query, services }) => listAudit(services, auditFilter(query), pageOfQuery(query)),
  }),
  defineAdminEndpoint('GET', '/api/audit/export', {
    summary: 'The audit log as CSV',
    errorStatuses: [400],
    query: auditQuery,
    text: { type: 'text/csv; charset=utf-8', filename: auditFile },
    handle: ({ query, services }) => Promise.resolve(auditCsv(services, auditFilter(query))),
  }),
]
