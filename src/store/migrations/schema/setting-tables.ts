import { CHANNEL } from '../../../domain/records/channel.ts'
import { recordColumns } from './record-columns.ts'
import type { Table } from './table.ts'

/** Stored channels and settings, the audit log, and alerts. */
export const SETTING_TABLES: readonly Table[] = [
  {
    name: 'channels',
    columns: recordColumns(CHANNEL),
  },
  {
    name: 'stored_settings',
    columns: { section: 'text', name: 'text', value: 'text' },
    key: ['section', 'name'],
  },
  {
    name: 'declared_settings',
    columns: { kind: 'text', name: 'text', object_id: 'integer?', fields: 'text', tags: 'text' },
    key: ['kind', 'name'],
    rows: 'plain',
  },
  {
    name: 'audit_log',
    columns: {
      id: 'id',
      at_ms: 'integer',
      actor_id: 'integer',
      object_id: 'integer?',
      actor: 'text',
      via: 'text',
      address: 'text',
      action: 'text',
      object_kind: 'text',
      object_name: 'text',
      changes: 'text',
    },
    indexes: { audit_log_by_time: '(at_ms)', audit_log_by_object: '(object_kind, object_name, id)' },
  },
  {
    name: 'alert_outbox',
    columns: {
      id: 'text',
      target: 'text',
      type: 'text',
      data: 'text',
      created_ms: 'integer',
      due_ms: 'integer',
      first_ms: 'integer?',
      attempts: 'integer',
    },
    key: ['target', 'id'],
    indexes: { alert_outbox_by_due: '(target, due_ms)' },
  },
  {
    name: 'alert_thresholds',
    columns: { type: 'text primary key', threshold: 'integer' },
  },
  {
    name: 'alert_conditions',
    columns: { name: 'text primary key', until_ms: 'integer' },
  },
  {
    name: 'alert_sender',
    columns: { id: 'integer primary key', node: 'text', until_ms: 'integer' },
  },
  {
    name: 'low_quotas_told',
    columns: { user_id: 'integer primary key' },
  },
]
