/** Tables of alerts. */
export interface AlertTables {
  readonly alert_outbox: AlertOutboxTable
  readonly alert_thresholds: AlertThresholdsTable
  readonly alert_conditions: AlertConditionsTable
  readonly alert_sender: AlertSenderTable
  readonly low_quotas_told: LowQuotasToldTable
}

/** Events that receivers are yet to be told. A transaction that finds one adds a row without a target. */
interface AlertOutboxTable {
  /** Id of the event, the same for all targets. */
  id: string
  /** Tag of the receiver; empty before the event is spread over the receivers. */
  target: string
  type: string
  /** JSON of the event's data. */
  data: string
  created_ms: number
  /** Time of the next attempt; that of an attempt under way is when it is given up for lost. */
  due_ms: number
  /** Time of the first attempt. */
  first_ms: number | null
  attempts: number
}

/** Thresholds of the events that the database itself finds; events without a row are not added. */
interface AlertThresholdsTable {
  type: string
  threshold: number
}

/** Conditions that some node has reported: a channel in cooldown, load shedding. */
interface AlertConditionsTable {
  name: string
  /** Time at which the condition is over, unless a node reports it again. */
  until_ms: number
}

/** Node that delivers the events of all, in one row. */
interface AlertSenderTable {
  id: number
  node: string
  until_ms: number
}

/** Users of whose low quota there was an alert, and whose quota was not above the threshold since. */
interface LowQuotasToldTable {
  user_id: number
}
