import { THINKING_FORMS } from '@sluice/wire/model-capabilities'
import type { Price } from '../price.ts'
import { NO_LIMIT, type RateLimit } from '../rate-limit.ts'
import { keepingTime } from './duration.ts'
import { declaredName, flag, json, list, oneOf } from './field-types.ts'
import { declareRecord, type Values } from './record.ts'

/** Settings of a model, as in gateway.yaml: `docs/configuration.md: Models`. */
export const MODEL_SETTINGS = declareRecord('', {
  /** Name used by the `vendor_routes` of a token and by `owned_by` in model lists; undefined if unknown. */
  vendor: { type: declaredName('the name of a vendor'), default: undefined, declared: true },
  /** Undefined if the model has no price. */
  price: { type: json<Price>(), default: undefined, declared: true },
  rate_limit: { type: json<RateLimit>(), default: NO_LIMIT, declared: true },
  /**
   * Whether the model accepts `temperature`, `top_p` and `top_k`; if undefined, its name decides, as for the
   * next two.
   */
  sampling: { type: flag, default: undefined, declared: true },
  thinking: {
    type: oneOf(THINKING_FORMS, 'a form of thinking'),
    default: undefined,
    declared: true,
  },
  /** Whether messages of the history may contain `reasoning_content` in the chat dialect. */
  takes_thoughts: { type: flag, default: undefined, declared: true },
  cache_breakpoints: { type: flag, default: undefined, declared: true },
  /** Models that are called instead if no channel of this one answers, in order. */
  fallback: {
    type: list(declaredName('the name of a model'), 'a list of models'),
    default: [],
    declared: true,
    edit: 'admin',
    as: 'ModelFallback',
  },
  /** Model that is called instead once no channel of this one is left. `docs/configuration.md: Successor`. */
  successor: {
    type: declaredName('the name of a model'),
    default: undefined,
    declared: true,
    edit: 'admin',
    as: 'ModelSuccessor',
  },
  /** Choice among the channels of equal priority. `docs/configuration.md: Balance`. */
  balance: {
    type: oneOf(['weight', 'least_busy', 'latency'], 'a way to balance'),
    default: 'weight',
    declared: true,
    edit: 'admin',
    as: 'ModelBalance',
  },
  /** How long its answers are kept, in milliseconds; 0 keeps none, undefined follows `options.cache`. */
  cache: { type: keepingTime, default: undefined, declared: true, edit: 'admin', as: 'ModelCache' },
})

/** Settings of a model. As declared in gateway.yaml they lack the built-in vendor and price. */
export type ModelSettings = Values<typeof MODEL_SETTINGS.fields>

/** A model that clients may request. */
export type Model = ModelSettings & {
  readonly name: string
  /** Context length in tokens; an assumed value if the price data does not state it. */
  readonly contextTokens: number
  /**
   * Which of the built-in prices applies, if they depend on the date or the time of day. It belongs to the
   * version of the prices of a call.
   */
  readonly priceMoment?: string | undefined
}
