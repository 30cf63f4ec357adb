import { Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { CallDetail } from '../../api/calls.ts'
import { type CallContent, type ContentPart, contentQuery } from '../../api/content.ts'
import { Conversation } from '../../components/conversation.tsx'
import contentClasses from '../../components/conversation.module.css'
import { turnsWithPictures } from '../../components/pictures-of-content.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { QueryResult } from '../../components/query-result.tsx'
import { useSignedInAccount } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './call-details.module.css'

const PARTS = ['request_received', 'request_sent', 'answer_received', 'answer_sent'] as const

/**
 * The recorded content of a call. It is loaded only when the user asks for it, because each reading is
 * written to the audit log.
 */
export function CallContentSection({ call }: { readonly call: CallDetail }) {
  const { content } = useTexts()
  const { profile } = useSignedInAccount()
  const [isAsked, setIsAsked] = useState(false)
  if (call.content_address === '') return null
  return (
    <>
      <h3>{content.title}</h3>
      {isAsked ? (
        <Asked id={call.id} />
      ) : (
        <p className={classes['actions']}>
          <Button variant="default" onClick={() => setIsAsked(true)}>
            {content.show}
          </Button>
          {call.user_id !== profile.id && <span className={classes['note']}>{content.isRecorded}</span>}
        </p>
      )}
    </>
  )
}

function Asked({ id }: { readonly id: string }) {
  const { content } = useTexts()
  const { profile } = useSignedInAccount()
  return (
    <QueryResult query={useQuery(contentQuery(profile.id, id))}>
      {(found) => (found ? <Said content={found} /> : <p className={classes['note']}>{content.notYours}</p>)}
    </QueryResult>
  )
}

function Said({ content: found }: { readonly content: CallContent }) {
  const { content } = useTexts()
  const { parts, conversation } = found
  const raw = PARTS.flatMap((name) => {
    const part = parts[name]
    return part ? [<RawPart key={name} label={content.parts[name]} part={part} />] : []
  })
  return (
    <>
      {conversation && <Conversation turns={turnsWithPictures(found)} label={content.conversation} />}
      <p className={classes['note']}>{content.raw}</p>
      {raw}
    </>
  )
}

/** The unchanged text or bytes of a part; if only an outline was recorded, its known facts. */
function RawPart({ label, part }: { readonly label: string; readonly part: ContentPart }) {
  const { common, content } = useTexts()
  const { text, base64, ...facts } = part
  const shown = text ?? base64 ?? JSON.stringify(facts, null, 2)
  return (
    <details className={contentClasses['fold']} open={text === undefined && base64 === undefined}>
      <summary>{base64 === undefined ? label : content.binary(label)}</summary>
      <pre className={contentClasses['raw']} tabIndex={0}>
        <code>{shown}</code>
      </pre>
      <CopyButton label={common.copy} text={shown} />
    </details>
  )
}
