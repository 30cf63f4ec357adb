import { ActionIcon, Button, Textarea } from '@mantine/core'
import { IconPaperclip, IconPlayerStopFilled, IconX } from '@tabler/icons-react'
import { useMediaQuery } from '@mantine/hooks'
import { useRef, useState } from 'react'
import { ErrorAlert } from '../../components/error-alert.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './playground-page.module.css'
import { MAX_IMAGE_BYTES, shrinkImage } from './shrink-image.ts'

/** Matches screens that probably have no keyboard, so that keyboard shortcuts are not mentioned. */
const PHONE = '(width < 640px), (pointer: coarse)'

/**
 * The input for a message and its images. Enter sends it and Shift+Enter begins a new line. On a touch
 * screen, which has no Shift key, Enter begins a new line.
 */
export function Composer({
  draft,
  onDraft,
  hint,
  canSend,
  isRunning,
  onSend,
  onStop,
}: {
  readonly draft: string
  readonly onDraft: (text: string) => void
  /** A hint how the chosen models use the message, if that is not obvious. */
  readonly hint?: string | undefined
  readonly canSend: boolean
  readonly isRunning: boolean
  readonly onSend: (images: readonly string[]) => void
  readonly onStop: () => void
}) {
  const { playground } = useTexts()
  const [images, setImages] = useState<readonly string[]>([])
  const [problem, setProblem] = useState<string>()
  const input = useRef<HTMLTextAreaElement>(null)
  const isPhone = useMediaQuery(PHONE, undefined, { getInitialValueInEffect: false })
  const isTouched = useMediaQuery('(pointer: coarse)', undefined, { getInitialValueInEffect: false })
  const isReady = canSend && !isRunning && (draft.trim() !== '' || images.length > 0)
  const send = (): void => {
    if (!isReady) return
    onSend(images)
    setImages([])
    setProblem(undefined)
    input.current?.focus()
  }
  const attach = async (file: File | undefined): Promise<void> => {
    setProblem(undefined)
    if (!file) return
    if (file.size > MAX_IMAGE_BYTES) return setProblem(playground.imageTooLarge)
    try {
      const url = await shrinkImage(file)
      setImages((before) => [...before, url])
    } catch {
      setProblem(playground.notAnImage)
    }
  }
  return (
    <form
      className={classes['composer']}
      onSubmit={(event) => {
        event.preventDefault()
        send()
      }}
    >
      {images.length > 0 && (
        <ul className={classes['images']} aria-label={playground.images}>
          {images.map((url, place) => (
            <li key={place}>
              <img src={url} alt={playground.imageOf(place + 1)} />
              <ActionIcon
                aria-label={playground.removeImage(place + 1)}
                onClick={() => setImages(images.filter((_, other) => other !== place))}
              >
                <IconX size={14} />
              </ActionIcon>
            </li>
          ))}
        </ul>
      )}
      {problem !== undefined && <ErrorAlert text={problem} />}
      <Textarea
        ref={input}
        label={playground.message}
        description={hint}
        autoFocus
        autosize
        minRows={2}
        maxRows={10}
        value={draft}
        onChange={({ currentTarget: { value } }) => onDraft(value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || event.shiftKey || isTouched || event.nativeEvent.isComposing) return
          event.preventDefault()
          send()
        }}
      />
      <div className={classes['buttons']}>
        <AttachButton onFile={(file) => void attach(file)} />
        <span>{!isPhone && playground.enterHint}</span>
        {isRunning ? (
          <Button
            variant="default"
            leftSection={<IconPlayerStopFilled size={14} aria-hidden />}
            onClick={onStop}
          >
            {playground.stop}
          </Button>
        ) : (
          <Button type="submit" disabled={!isReady}>
            {playground.send}
          </Button>
        )}
      </div>
    </form>
  )
}

function AttachButton({ onFile }: { readonly onFile: (file: File | undefined) => void }) {
  const { playground } = useTexts()
  const file = useRef<HTMLInputElement>(null)
  return (
    <>
      <input
        ref={file}
        type="file"
        accept="image/png,image/jpeg,image/webp,image/gif"
        hidden
        onChange={({ currentTarget }) => {
          onFile(currentTarget.files?.[0])
          currentTarget.value = ''
        }}
      />
      <ActionIcon
        aria-label={playground.attach}
        title={playground.attach}
        onClick={() => file.current?.click()}
      >
        <IconPaperclip size={18} />
      </ActionIcon>
    </>
  )
}
