import type { z } from 'zod'
import type { importPlanSchema, importResultSchema } from '../../src/management/imports.ts'
import { queryString, request } from './client.ts'

/** What an import of a file would write. */
export type ImportReport = z.output<typeof importPlanSchema>

/** What an import has written. */
export type ImportResult = z.output<typeof importResultSchema>

/** Sends a file; the gateway reports what its import would write. */
export function previewImport(file: File): Promise<ImportReport> {
  return request<ImportReport>('POST', `/api/import${queryString({ name: file.name })}`, file)
}

/** Writes what the report of the import with this id announced. */
export function applyImport(id: string): Promise<ImportResult> {
  return request<ImportResult>('POST', `/api/import/${id}/apply`)
}
