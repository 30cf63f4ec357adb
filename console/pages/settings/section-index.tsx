import { useLocation } from '@tanstack/react-router'
import { useEffect } from 'react'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './settings-page.module.css'

/** Links to the sections of the page, which is long. */
export function SectionIndex({
  sections,
}: {
  readonly sections: readonly (readonly [id: string, title: string])[]
}) {
  const { settings } = useTexts()
  const hash = useLocation({ select: (location) => location.hash })
  // The sections are there only now, after their data, so that the browser has not found the one in the address.
  useEffect(() => open(hash), [hash])
  return (
    <nav aria-label={settings.sections} className={classes['index']}>
      {sections.map(([id, title]) => (
        <a
          key={id}
          href={`#${id}`}
          // A new address would be a navigation, which asks whether to leave unsaved changes.
          onClick={(event) => {
            event.preventDefault()
            open(id)
          }}
        >
          {title}
        </a>
      ))}
    </nav>
  )
}

function open(id: string): void {
  const section = document.getElementById(id)
  section?.scrollIntoView()
  section?.focus({ preventScroll: true })
}
