# SPDX-License-Identifier: Apache-2.0
# Manual pages and completions for shells, which the programs print themselves
# (common/command_line). The target `tributary_manual` makes them.

# tributary_manual(program...)
function(tributary_manual)
  if(TRIBUTARY_SANITIZE OR CMAKE_CROSSCOMPILING)
    return()
  endif()
  find_program(TRIBUTARY_GZIP gzip REQUIRED)
  set(manual ${CMAKE_BINARY_DIR}/manual)
  file(MAKE_DIRECTORY ${manual})
  set(files)
  foreach(program ${ARGN})
    set(page ${manual}/${program}.1)
    add_custom_command(OUTPUT ${page}.gz
      COMMAND ${program} --man-page > ${page}
      COMMAND ${TRIBUTARY_GZIP} -9nf ${page}
      DEPENDS ${program} VERBATIM)
    install(FILES ${page}.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1
      COMPONENT manual)
    list(APPEND files ${page}.gz)
    # The names that each shell looks for, in the folders for packages.
    foreach(shell_folder_name
        bash:bash-completion/completions:${program}
        zsh:zsh/vendor-completions:_${program}
        fish:fish/vendor_completions.d:${program}.fish)
      string(REPLACE ":" ";" parts ${shell_folder_name})
      list(GET parts 0 shell)
      list(GET parts 1 folder)
      list(GET parts 2 name)
      set(script ${manual}/${shell}/${name})
      file(MAKE_DIRECTORY ${manual}/${shell})
      add_custom_command(OUTPUT ${script}
        COMMAND ${program} --completion ${shell} > ${script}
        DEPENDS ${program} VERBATIM)
      install(FILES ${script} DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder}
        COMPONENT manual)
      list(APPEND files ${script})
    endforeach()
  endforeach()
  add_custom_target(tributary_manual ALL DEPENDS ${files})
  add_dependencies(tributary_installed tributary_manual)
endfunction()
