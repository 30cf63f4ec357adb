import { GUARDS_HEADER } from '../../domain/guard.ts'
import { GatewayError } from '../../errors.ts'
import type { AdmittedRequest } from '../../call/answer-request.ts'
import { CheckCancelled } from '../../call/check-turns.ts'
import type { RequestReaderContext } from '../../call/dialects/dialect.ts'
import type { CallFeature, KeptAnswer, KeptAnswerCheck } from '../../call/feature.ts'
import type { IncomingCall } from '../../call/incoming-call.ts'
import { parseRequest, withoutModelSuffix } from '../../call/parse-request.ts'
import type { CallGuards } from './call-guards.ts'
import { guardedAttempt, guardedFetched } from './guarded-attempt.ts'
import { guardedForm } from './guarded-form.ts'
import { checkStoredAnswer } from './guarded-reply.ts'
import { applyGuardsToScan, guardedRequest } from './guarded-request.ts'
import type { Guards } from './guards.ts'

/** Searches requests and answers, changes them, and refuses them: `docs/guards.md`. */
export function guardFeature(guards: Guards): CallFeature<CallGuards> {
  const feature: CallFeature<CallGuards> = {
    concerns: (settings) => settings.guards.length > 0 && ((caller) => guards.concern(settings, caller)),
    async answer(request, incoming, ways) {
      const { settings, caller, routes } = request
      const active = guards.of(settings, caller, request.request.model, routes)
      if (!active) return ways.make(incoming, undefined)
      begin(active, incoming)
      guards.countRestored(active, caller, incoming.response)
      try {
        await ways.make(incoming, active, await checkedRequest(active, request, incoming))
      } catch (error) {
        // The client left while its request was checked, so that nothing was sent or reserved.
        if (!(error instanceof CheckCancelled)) throw error
      } finally {
        if (!active.isSuspended) guards.ended(active)
      }
    },
    suspended: (active) => active.suspend(),
    resumed(suspended, { incoming, caller, settings }) {
      const active = guards.resumed(settings, caller, suspended)
      begin(active, incoming)
      guards.countRestored(active, caller, incoming.response)
      incoming.response.onClosed(() => guards.ended(active))
      return active
    },
    kept(answer) {
      const active = guards.ofKept(answer)
      return active && checkOfKept(guards, active, answer, feature)
    },
    fetched: (active, call, part, place) => guardedFetched(active, call, part, place),
    adapted: (active, call, request) => guardedAttempt(active, call, request),
    async result(active, _, answer, shape) {
      try {
        return await applyGuardsToScan(active, answer, shape)
      } catch (error) {
        if (error instanceof GatewayError) return undefined
        throw error
      }
    },
    head(active, { plan }, headers) {
      const verdicts = plan.request.stream ? active.ofRequest : active.text
      if (verdicts !== '') headers[GUARDS_HEADER] = verdicts
    },
    errorText: (active, text, isRecorded) => active.checkedError(text, isRecorded),
    row: (active) => ({ guards: active.text, ...(active.hasBlocked && { note: 'guard_blocked' }) }),
    close: () => guards.close(),
  }
  return feature
}

function begin(active: CallGuards, incoming: IncomingCall): void {
  active.services?.begin(incoming)
  active.begin(incoming.response)
}

/** Checks the body of a request. A request that guards have changed is parsed again. */
async function checkedRequest(
  active: CallGuards,
  admitted: AdmittedRequest,
  incoming: IncomingCall,
): Promise<AdmittedRequest> {
  const { body, settings, read } = admitted
  const guarded = read.scan
    ? await guardedRequest(active, read)
    : { ...read, body: await guardedForm(active, read.body) }
  let { request } = admitted
  if (guarded.body !== body || request.responses?.composed !== undefined) {
    const check: RequestReaderContext['check'] = (scan, shape) => applyGuardsToScan(active, scan, shape)
    const { headers } = incoming.request
    request = withoutModelSuffix(
      await parseRequest(guarded, headers, { ...admitted.reader, check }),
      settings,
    )
  }
  active.ofRequest = active.text
  return {
    ...admitted,
    body: guarded.body,
    request,
    decisions: {
      // Other guards might change the answer, and other pseudonyms would put other values back into it.
      answerDependsOn: [active.all.map(({ guard }) => guard), [...active.pseudonyms.entries()]],
      streamHeaders: active.ofRequest === '' ? {} : { [GUARDS_HEADER]: active.ofRequest },
    },
    received: body,
  }
}

function checkOfKept(
  guards: Guards,
  active: CallGuards,
  { incoming }: KeptAnswer,
  feature: object,
): KeptAnswerCheck {
  return {
    concernsAnswer: active.concernsAnswer,
    errorText: (text, isRecorded) => active.checkedError(text, isRecorded),
    async check(body) {
      begin(active, incoming)
      try {
        const checked = await checkStoredAnswer(body, active)
        return { body: checked, headers: { [GUARDS_HEADER]: active.text } }
      } catch (error) {
        if (error instanceof CheckCancelled) return undefined
        throw error
      } finally {
        guards.ended(active)
      }
    },
    begin() {
      active.services?.begin(incoming)
      return { feature, state: active, others: undefined }
    },
    ended: () => guards.ended(active),
  }
}
