import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { LATENCY_COLUMNS, POINT_COLUMNS, POINT_TABLES, SLOTS_PER_DAY } from '../../src/store/usage-points.ts'
import { deriveSecrets } from '../../src/store/secrets.ts'
import { openSqliteStore } from '../../src/store/sqlite/open.ts'
import { GATEWAY_SECRET } from '../../test/equipment/program.ts'

const DAYS = 90
const DAY_MS = 86_400_000
const MODELS = 20
const CHANNELS = 10
/** A key of root's without limits. */
const KEY = {
  user_id: 1,
  status: 1,
  created_time: 1_760_000_000,
  expired_time: -1,
  remain_quota: 0,
  unlimited_quota: true,
  model_limits_enabled: false,
  model_limits: '',
  allow_ips: null,
  group: '',
  vendor_routes: '',
} as const
/** The sums that the log and the series share. */
const SUMS = ['requests', 'quota', 'input_tokens', 'output_tokens']

/**
 * Adds keys of root's and the calls of the last 90 days to the database of a gateway that is stopped: a row
 * for each call, and the sums that its settlement would have moved. The last call ended just now.
 */
export async function addManyCalls(
  dataDir: string,
  { keys, calls }: { readonly keys: number; readonly calls: number },
): Promise<void> {
  const path = join(dataDir, 'sluice.db')
  const store = await openSqliteStore({ path, secrets: deriveSecrets(GATEWAY_SECRET), onCallingThread: true })
  let firstKey = 0
  for (let n = 0; n < keys; n += 1) {
    const { id } = await store.write('createToken', {
      ...KEY,
      name: `team ${n % 97} key ${n}`,
      key: `many${n}`,
    })
    firstKey ||= id
  }
  await store.close()
  const file = new DatabaseSync(path)
  file.exec('pragma synchronous = off; begin')
  const nowMs = Date.now()
  const apart = (DAYS * DAY_MS) / calls
  file.exec(`
    with recursive n(i) as (select 0 union all select i + 1 from n where i < ${calls - 1}),
      calls as (select i, cast(${nowMs - DAYS * DAY_MS} + (i + 1) * ${apart} as integer) - 2000 as began from n)
    insert into usage_log (id, ended_ms, user_id, token_id, model, requested_model, upstream_model, channel, group_name,
      input_tokens, cache_read_tokens, cache_write_5m_tokens, cache_write_1h_tokens, output_tokens, reasoning_tokens,
      web_searches, quota, price_version, duration_ms, first_byte_ms, stream, reason, kind)
    select printf('%08x-%04x-7000-8000-%012x', began / 65536, began % 65536, i), began + 1500, 1, ${firstKey} + i * 79 % ${keys},
      'model-' || (i % ${MODELS}), 'model-' || (i % ${MODELS}), 'model-' || (i % ${MODELS}), 'channel-' || (i / 7 % ${CHANNELS}), 'default',
      900, 100, 0, 0, 100, 0, 0, 1000 + i % 777, 'v1', 1500, 400, 1, 'complete', 'chat' from calls`)
  const of = 'user_id, token_id, model, channel, group_name'
  const [slots, ...others] = POINT_TABLES
  file.exec(`
    insert into ${slots?.name} (slot, ${of}, requests, quota, input_tokens, cache_read_tokens, output_tokens, total_5, first_3)
    select ended_ms / 1800000, ${of}, count(*), sum(quota), sum(input_tokens), sum(cache_read_tokens), sum(output_tokens), count(*), count(*)
    from usage_log group by ended_ms / 1800000, ${of}`)
  file.exec(`
    insert into usage_days (day, ${of}, ${SUMS.join(', ')}, cache_read_tokens, cache_write_5m_tokens, cache_write_1h_tokens, reasoning_tokens, web_searches)
    select slot / ${SLOTS_PER_DAY}, ${of}, ${SUMS.map((name) => `sum(${name})`).join(', ')}, sum(cache_read_tokens), 0, 0, 0, 0
    from usage_slots group by slot / ${SLOTS_PER_DAY}, ${of}`)
  const columns = [...POINT_COLUMNS, ...LATENCY_COLUMNS]
  for (const { name, key } of others) {
    const [time = '', ...rest] = key
    const from = time === 'slot' ? 'slot' : `slot / ${SLOTS_PER_DAY}`
    file.exec(`
      insert into ${name} (${[...key, ...columns].join(', ')})
      select ${[from, ...rest, ...columns.map((column) => `sum(${column})`)].join(', ')} from usage_slots
      group by ${[from, ...rest].join(', ')}`)
  }
  file.exec('commit')
  file.close()
}
