import {
  applyImport,
  importParams,
  importPlanSchema,
  importQuery,
  importResultSchema,
  MAX_UPLOAD_BYTES,
  previewImport,
} from '../management/imports.ts'
import { defineRootUserEndpoint, type JsonEndpoint } from './endpoint.ts'

/** Endpoints to import data of other gateways: `docs/administration.md: Import`. */
export const IMPORT_ENDPOINTS: readonly JsonEndpoint[] = [
  defineRootUserEndpoint('POST', '/api/import', {
    summary: 'Reads a database or a configuration of another gateway, and reports what an import would write',
    upload: MAX_UPLOAD_BYTES,
    query: importQuery,
    responseBody: importPlanSchema,
    handle: ({ query, services, receive }) => previewImport(services, query, receive),
  }),
  defineRootUserEndpoint('POST', '/api/import/:id/apply', {
    summary: 'Writes what the report on an upload announced',
    params: importParams,
    responseBody: importResultSchema,
    handle: ({ params, services }) => applyImport(services, params.id),
  }),
]
