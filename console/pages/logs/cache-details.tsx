import { Link } from '@tanstack/react-router'
import type { CallDetail } from '../../api/calls.ts'
import { CacheBreakMark } from '../../components/cache-break-mark.tsx'
import { truncatedVerdict } from '../../components/cache-breaks.ts'
import { MoneyText } from '../../components/money-text.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './call-details.module.css'
import { DetailList } from '../../components/detail-list.tsx'

/**
 * The session of a call, what prompt caches saved, and why a cache was not used. Shows nothing if the call
 * has none of these.
 */
export function CacheDetails({ call }: { readonly call: CallDetail }) {
  const { caches, sessions } = useTexts()
  const { session, cache_break: reason, cache_verdict: verdict } = call
  const amountOf = (quota: number) => (quota === 0 ? '' : <MoneyText quota={quota} />)
  const isHit = call.cache === 'hit'
  if (session === '' && call.cache_saved === 0 && call.cache_surcharge === 0 && !isHit) return null
  return (
    <>
      <h3>{caches.title}</h3>
      <DetailList
        rows={[
          [
            sessions.session,
            session === '' ? (
              ''
            ) : (
              <Link to="/sessions/$id" params={{ id: session }}>
                {session}
              </Link>
            ),
          ],
          [caches.saved, amountOf(call.cache_saved)],
          [caches.surcharge, amountOf(call.cache_surcharge)],
          [caches.answers, isHit ? caches.isHit : ''],
          [caches.hitSaved, amountOf(call.hit_saved)],
          [caches.broke, reason === '' ? '' : <CacheBreakMark reason={reason} />],
        ]}
      />
      {verdict !== '' && (
        <>
          <p className={classes['note']}>{caches.verdict}</p>
          <blockquote className={classes['words']}>
            <code>{truncatedVerdict(verdict)}</code>
          </blockquote>
        </>
      )}
    </>
  )
}
